import { serviceCaller, type Caller } from "@millwright/caller";
import {
  codeHostEventsOf,
  jsonBytes,
  withAttributes,
  type Attributes,
  type CodeHostDelivery,
  type CodeHostEvent,
} from "@millwright/code-host-events";
import { isDomainError, type DomainError } from "@millwright/errors";
import { as, type FactoryUid } from "@millwright/ids";
import type { Automation } from "../domain/automation.ts";
import { continuationOf, ticketMetadata, tooManyBuilds, type BuildsOfTask } from "../domain/bound-task.ts";
import { checkCodeHostEvents, isOwn, isUntold } from "../domain/code-host-trigger.ts";
import type { Foreman } from "../domain/dispatch.ts";
import { withEnvelope } from "../domain/envelope.ts";
import type { Factory } from "../domain/factory.ts";
import { isPassing } from "../domain/passing.ts";
import { REPLAYED, type TriggerEvent } from "../domain/trigger-event.ts";
import type { Look } from "./decide-event.ts";
import { findBoundTasks, type FindBoundTasksDeps } from "./find-bound-tasks.ts";

export type LookAtCodeHostDeliveryDeps = FindBoundTasksDeps & {
  deliveries: {
    /** Undefined: there is none, or it was forgotten. */
    codeHostDelivery(uid: string): Promise<CodeHostDelivery | undefined>;
  };
  factories: { find(uid: FactoryUid): Promise<Factory | undefined> };
  agents: { findForeman(caller: Caller, factory: Factory): Promise<Foreman> };
  builds: {
    /** How often builds have had automations continue these tasks since then. */
    continuedFor(factoryUid: string, taskUids: readonly string[], since: Date): Promise<readonly BuildsOfTask[]>;
  };
  /** This service's name, in which it asks. */
  service: string;
  codeHosts: {
    /** What filters ask and payloads leave out. Errors: those of the code host. */
    describePullRequests(
      teamUid: string,
      codeHostUid: string,
      repository: string,
      numbers: readonly number[],
    ): Promise<Attributes>;
  };
};

/** As many as are asked about at once. */
const PULL_REQUESTS_MAX = 10;
const SOURCES = { github: "GITHUB_WEBHOOK", gitlab: "GITLAB_WEBHOOK" } as const;

/** `asks`: the code host is asked, and may take its time. */
export type LookAtCodeHostOptions = { readonly asks: boolean };

/**
 * A delivery of a code host. With `asks`, what a filter needs and its payload leaves out is asked of the code host, once for all automations. What happens on an issue or a
 * pull request to which a task of the factory is bound, or in a build of one, continues that task.
 */
export async function lookAtCodeHostDelivery(
  deps: LookAtCodeHostDeliveryDeps,
  event: TriggerEvent,
  automations: readonly Automation[],
  { asks }: LookAtCodeHostOptions,
): Promise<Look> {
  const uid = event.deliveryUid ?? event.uid;
  const delivery = await deps.deliveries.codeHostDelivery(uid);
  const factory = await deps.factories.find(as<FactoryUid>(event.factoryUid));
  const repositories = factory?.repositories ?? [];
  const triggers = automations.filter(({ enabled }) => enabled).flatMap(({ rules }) => rules.triggers);
  const answers = await Promise.all(
    (delivery ? codeHostEventsOf(delivery) : []).map(async (one): Promise<Answer> =>
      isOwn(one, repositories) && isUntold(one, triggers) ? completed(deps, event, one, asks) : { event: one },
    ),
  );
  const told = answers.map((answer) => answer.event);
  const unanswered = answers.filter(({ isUnanswered }) => isUnanswered);
  const failure = unanswered.find((answer) => answer.failure)?.failure;
  const check = checkCodeHostEvents(told, repositories, new Set(unanswered.map((answer) => answer.event)));
  const own = told.find((one) => one.items.length > 0 && isOwn(one, repositories));
  const bound =
    own && factory && triggers.some((trigger) => check(trigger)?.passed)
      ? await findBoundTasks(deps, event, own.items.slice(0, PULL_REQUESTS_MAX))
      : [];
  const isForBuild = own?.subject.kind === "build" && event.event !== REPLAYED;
  const builds =
    isForBuild && bound.length > 0
      ? await deps.builds.continuedFor(
          event.factoryUid,
          bound.map(({ task }) => task.uid),
          dayBefore(event.occurredAt),
        )
      : [];
  const foremanUid =
    bound.length > 0 && automations.some(({ rules }) => rules.agent === undefined)
      ? await foremanOf(deps, event, factory!)
      : undefined;
  const { code_host_uid: codeHostUid, delivery_id: deliveryId } = event.subject as {
    code_host_uid: string;
    delivery_id: string;
  };
  return {
    check,
    ...(failure && { delay: failure }),
    veto: (automation) => tooManyBuilds(continuationOf(bound, automation, foremanUid), automation, builds),
    tell: (automation) => {
      const continues = continuationOf(bound, automation, foremanUid);
      const facts = {
        events: [...new Set(told.map((one) => one.event))].join(", "),
        repository: told[0]!.repository.slice(0, 300),
        delivery: `${deliveryId} received ${event.occurredAt}`,
      };
      return {
        prompt: withEnvelope(
          automation.rules.prompt,
          `${event.provider} event`,
          { ...facts, ...(continues && { task: continues.taskUid }) },
          jsonBytes(delivery!).length,
        ),
        source: SOURCES[event.provider as keyof typeof SOURCES],
        metadata: {
          code_host_uid: codeHostUid,
          delivery_id: deliveryId,
          ...ticketMetadata(event.provider, own?.items[0]),
        },
        payload: { codeHostDeliveryUid: uid },
        ...(continues && { continues: { ...continues, ...(isForBuild && { isForBuild }) } }),
      };
    },
  };
}

const dayBefore = (time: string): Date => new Date(Date.parse(time) - 24 * 3_600_000);

/** Undefined: there is none, and who is not there holds no conversation. */
async function foremanOf(
  { agents, service }: LookAtCodeHostDeliveryDeps,
  { requestId, teamUid }: TriggerEvent,
  factory: Factory,
): Promise<string | undefined> {
  const self = serviceCaller(service, requestId, undefined, [{ teamUid: as(teamUid), verbs: ["factory.view"] }]);
  return agents.findForeman(self, factory).then(
    ({ agentUid }) => agentUid,
    (error: unknown) => {
      if (isDomainError(error) && error.reason === "foreman_missing") return undefined;
      throw error;
    },
  );
}

/** An event with what the code host answered. `isUnanswered`: it must still be asked; `failure`: why it could not be. */
type Answer = { readonly event: CodeHostEvent; readonly isUnanswered?: true; readonly failure?: DomainError };

/** A code host that refuses leaves the event as it is, and a filter that needs more does not match. One that cannot be reached is asked again later. */
async function completed(
  { codeHosts }: LookAtCodeHostDeliveryDeps,
  { teamUid, subject }: TriggerEvent,
  event: CodeHostEvent,
  asks: boolean,
): Promise<Answer> {
  const numbers = event.pullRequests.slice(0, PULL_REQUESTS_MAX);
  if (numbers.length === 0)
    return { event: withAttributes(event, Object.fromEntries(event.unresolved.map((key) => [key, []]))) };
  if (!asks) return { event, isUnanswered: true };
  const { code_host_uid: codeHostUid } = subject as { code_host_uid: string };
  return codeHosts.describePullRequests(teamUid, codeHostUid, event.repository, numbers).then(
    (attributes) => ({ event: withAttributes(event, attributes) }),
    (error: unknown) => {
      if (!isDomainError(error)) throw error;
      return isPassing(error) ? { event, isUnanswered: true as const, failure: error } : { event };
    },
  );
}
