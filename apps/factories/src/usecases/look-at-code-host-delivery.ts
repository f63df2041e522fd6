import { serviceCaller, type Caller } from "@millwright/caller";
import { codeHostEventsOf, jsonBytes, withAttributes, type Attributes, type CodeHostDelivery, type CodeHostEvent } from "@millwright/code-host-events";
import { isDomainError } from "@millwright/errors";
import { as, type FactoryUid } from "@millwright/ids";
import type { Automation } from "../domain/automation.ts";
import { continuationOf, ticketMetadata, tooManyBuilds, type BuildsOfTask } from "../domain/bound-task.ts";
import { checkCodeHostEvents, isOwn, isUntold } from "../domain/code-host-trigger.ts";
import type { Foreman } from "../domain/dispatch.ts";
import { withEnvelope } from "../domain/envelope.ts";
import type { Factory } from "../domain/factory.ts";
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
    describePullRequests(teamUid: string, codeHostUid: string, repository: string, numbers: readonly number[]): Promise<Attributes>;
  };
};

/** As many as are asked about at once. */
const PULL_REQUESTS_MAX = 10;
const SOURCES = { github: "GITHUB_WEBHOOK", gitlab: "GITLAB_WEBHOOK" } as const;

/**
 * A delivery of a code host. What a filter asks and its payload leaves out is asked of the code host, once for all automations. What happens on an issue or a
 * pull request to which a task of the factory is bound, or in a build of one, continues that task.
 */
export async function lookAtCodeHostDelivery(deps: LookAtCodeHostDeliveryDeps, event: TriggerEvent, automations: readonly Automation[]): Promise<Look> {
  const uid = event.deliveryUid ?? event.uid;
  const delivery = await deps.deliveries.codeHostDelivery(uid);
  const factory = await deps.factories.find(as<FactoryUid>(event.factoryUid));
  const repositories = factory?.repositories ?? [];
  const triggers = automations.filter(({ enabled }) => enabled).flatMap(({ rules }) => rules.triggers);
  const told = await Promise.all((delivery ? codeHostEventsOf(delivery) : []).map(async (one) => (isOwn(one, repositories) && isUntold(one, triggers) ? completed(deps, event, one) : one)));
  const check = checkCodeHostEvents(told, repositories);
  const own = told.find((one) => one.items.length > 0 && isOwn(one, repositories));
  const bound = own && factory && triggers.some((trigger) => check(trigger)?.passed) ? await findBoundTasks(deps, event, own.items.slice(0, PULL_REQUESTS_MAX)) : [];
  const isForBuild = own?.subject.kind === "build" && event.event !== REPLAYED;
  const builds = isForBuild && bound.length > 0 ? await deps.builds.continuedFor(event.factoryUid, bound.map(({ task }) => task.uid), dayBefore(event.occurredAt)) : [];
  const foremanUid = bound.length > 0 && automations.some(({ rules }) => rules.agent === undefined) ? await foremanOf(deps, event, factory!) : undefined;
  const { code_host_uid: codeHostUid, delivery_id: deliveryId } = event.subject as { code_host_uid: string; delivery_id: string };
  return {
    check,
    veto: (automation) => tooManyBuilds(continuationOf(bound, automation, foremanUid), automation, builds),
    tell: (automation) => {
      const continues = continuationOf(bound, automation, foremanUid);
      const facts = { events: [...new Set(told.map((one) => one.event))].join(", "), repository: told[0]!.repository.slice(0, 300), delivery: `${deliveryId} received ${event.occurredAt}` };
      return {
        prompt: withEnvelope(automation.rules.prompt, `${event.provider} event`, { ...facts, ...(continues && { task: continues.taskUid }) }, jsonBytes(delivery!).length),
        source: SOURCES[event.provider as keyof typeof SOURCES], metadata: { code_host_uid: codeHostUid, delivery_id: deliveryId, ...ticketMetadata(event.provider, own?.items[0]) },
        payload: { codeHostDeliveryUid: uid }, ...(continues && { continues: { ...continues, ...(isForBuild && { isForBuild }) } }),
      };
    },
  };
}

const dayBefore = (time: string): Date => new Date(Date.parse(time) - 24 * 3_600_000);

/** Undefined: there is none, and who is not there holds no conversation. */
async function foremanOf({ agents, service }: LookAtCodeHostDeliveryDeps, { requestId, teamUid }: TriggerEvent, factory: Factory): Promise<string | undefined> {
  const self = serviceCaller(service, requestId, undefined, [{ teamUid: as(teamUid), verbs: ["factory.view"] }]);
  return agents.findForeman(self, factory).then(({ agentUid }) => agentUid, (error: unknown) => {
    if (isDomainError(error) && error.reason === "foreman_missing") return undefined;
    throw error;
  });
}

/** A code host that refuses to say leaves it untold, which matches nothing; one that cannot be reached is asked again later. */
async function completed({ codeHosts }: LookAtCodeHostDeliveryDeps, { teamUid, subject }: TriggerEvent, event: CodeHostEvent): Promise<CodeHostEvent> {
  const numbers = event.pullRequests.slice(0, PULL_REQUESTS_MAX);
  if (numbers.length === 0) return withAttributes(event, Object.fromEntries(event.untold.map((key) => [key, []])));
  const { code_host_uid: codeHostUid } = subject as { code_host_uid: string };
  const said = await codeHosts.describePullRequests(teamUid, codeHostUid, event.repository, numbers).catch((error: unknown) => {
    if (isDomainError(error) && !error.retryable && !["unavailable", "internal", "rate_limited"].includes(error.kind)) return undefined;
    throw error;
  });
  return said ? withAttributes(event, said) : event;
}
