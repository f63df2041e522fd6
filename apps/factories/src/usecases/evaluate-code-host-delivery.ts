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
import { continuationOf, ticketMetadata, tooManyBuilds } from "../domain/bound-task.ts";
import { checkCodeHostEvents, isOwn, needsCodeHost } from "../domain/code-host-trigger.ts";
import type { Foreman } from "../domain/dispatch.ts";
import { withEnvelope } from "../domain/envelope.ts";
import type { Factory } from "../domain/factory.ts";
import { isTransientError } from "../domain/transient.ts";
import { REPLAYED, type TriggerEvent } from "../domain/trigger-event.ts";
import type { DecisionStore } from "../store/decision-store.ts";
import type { FactoryStore } from "../store/factory-store.ts";
import type { EventEvaluation } from "./decide-event.ts";
import { findBoundTasks, type FindBoundTasksDeps } from "./find-bound-tasks.ts";

export type EvaluateCodeHostDeliveryDeps = FindBoundTasksDeps & {
  deliveries: {
    /** Returns a delivery, or undefined if it is absent or pruned. */
    codeHostDelivery(uid: string): Promise<CodeHostDelivery | undefined>;
  };
  factories: Pick<FactoryStore, "find">;
  agents: { findForeman(caller: Caller, factory: Factory): Promise<Foreman> };
  builds: Pick<DecisionStore, "continuedFor">;
  /** This service's name as a caller. */
  service: string;
  codeHosts: {
    /** Returns data that filters require and payloads omit. Errors: those of the code host. */
    describePullRequests(
      teamUid: string,
      codeHostUid: string,
      repository: string,
      numbers: readonly number[],
    ): Promise<Attributes>;
  };
};

/** The maximum number of pull requests per query. */
const PULL_REQUESTS_MAX = 10;
const SOURCES = { github: "GITHUB_WEBHOOK", gitlab: "GITLAB_WEBHOOK" } as const;

/** `queriesCodeHost`: whether to query the code host, which may take time. */
export type EvaluateCodeHostOptions = { readonly queriesCodeHost: boolean };

/**
 * Evaluates a delivery of a code host. With `queriesCodeHost`, it queries the code host for data that filters require
 * and the payload omits, once for all automations. If a task of the factory is bound to the event's issue or pull
 * request, or to that of its build, the event continues that task.
 */
export async function evaluateCodeHostDelivery(
  deps: EvaluateCodeHostDeliveryDeps,
  event: TriggerEvent,
  automations: readonly Automation[],
  { queriesCodeHost }: EvaluateCodeHostOptions,
): Promise<EventEvaluation> {
  const uid = event.deliveryUid ?? event.uid;
  const delivery = await deps.deliveries.codeHostDelivery(uid);
  const factory = await deps.factories.find(as<FactoryUid>(event.factoryUid));
  const repositories = factory?.repositories ?? [];
  const triggers = automations.filter(({ enabled }) => enabled).flatMap(({ rules }) => rules.triggers);
  const completedEvents = await Promise.all(
    (delivery ? codeHostEventsOf(delivery) : []).map(async (codeHostEvent): Promise<CompletedEvent> =>
      isOwn(codeHostEvent, repositories) && needsCodeHost(codeHostEvent, triggers)
        ? completeEvent(deps, event, codeHostEvent, queriesCodeHost)
        : { event: codeHostEvent },
    ),
  );
  const events = completedEvents.map((completed) => completed.event);
  const incomplete = completedEvents.filter(({ isIncomplete }) => isIncomplete);
  const failure = incomplete.find((completed) => completed.failure)?.failure;
  const check = checkCodeHostEvents(events, repositories, new Set(incomplete.map((completed) => completed.event)));
  const own = events.find((candidate) => candidate.items.length > 0 && isOwn(candidate, repositories));
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
    delay: failure,
    veto: (automation) => tooManyBuilds(continuationOf(bound, automation, foremanUid), automation, builds),
    runInput: (automation) => {
      const continues = continuationOf(bound, automation, foremanUid);
      const properties = {
        events: [...new Set(events.map((codeHostEvent) => codeHostEvent.event))].join(", "),
        repository: events[0]!.repository.slice(0, 300),
        delivery: `${deliveryId} received ${event.occurredAt}`,
      };
      return {
        prompt: withEnvelope(
          automation.rules.prompt,
          `${event.provider} event`,
          { ...properties, ...(continues && { task: continues.taskUid }) },
          jsonBytes(delivery!).length,
        ),
        source: SOURCES[event.provider as keyof typeof SOURCES],
        metadata: {
          code_host_uid: codeHostUid,
          delivery_id: deliveryId,
          ...ticketMetadata(event.provider, own?.items[0]),
        },
        payload: { codeHostDeliveryUid: uid },
        continues: continues && { ...continues, ...(isForBuild && { isForBuild }) },
      };
    },
  };
}

const dayBefore = (time: string): Date => new Date(Date.parse(time) - 24 * 3_600_000);

/** Returns the foreman's uid, or undefined if there is none. */
async function foremanOf(
  { agents, service }: EvaluateCodeHostDeliveryDeps,
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

/**
 * An event with the code host's data. `isIncomplete`: the code host must still be queried. `failure`: why the query
 * failed.
 */
type CompletedEvent = { readonly event: CodeHostEvent; readonly isIncomplete?: true; readonly failure?: DomainError };

/**
 * Adds the code host's data to an event. If the code host rejects the query, the event is unchanged, and filters that
 * require more data do not match. If the code host is unreachable, the query is retried later.
 */
async function completeEvent(
  { codeHosts }: EvaluateCodeHostDeliveryDeps,
  { teamUid, subject }: TriggerEvent,
  event: CodeHostEvent,
  queriesCodeHost: boolean,
): Promise<CompletedEvent> {
  const numbers = event.pullRequests.slice(0, PULL_REQUESTS_MAX);
  if (numbers.length === 0)
    return { event: withAttributes(event, Object.fromEntries(event.unresolved.map((key) => [key, []]))) };
  if (!queriesCodeHost) return { event, isIncomplete: true };
  const { code_host_uid: codeHostUid } = subject as { code_host_uid: string };
  return codeHosts.describePullRequests(teamUid, codeHostUid, event.repository, numbers).then(
    (attributes) => ({ event: withAttributes(event, attributes) }),
    (error: unknown) => {
      if (!isDomainError(error)) throw error;
      return isTransientError(error) ? { event, isIncomplete: true as const, failure: error } : { event };
    },
  );
}
