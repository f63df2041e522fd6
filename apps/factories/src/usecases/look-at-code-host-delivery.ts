import { codeHostEventsOf, jsonBytes, withAttributes, type Attributes, type CodeHostDelivery, type CodeHostEvent } from "@millwright/code-host-events";
import { isDomainError } from "@millwright/errors";
import { as, type FactoryUid } from "@millwright/ids";
import type { Automation } from "../domain/automation.ts";
import { checkCodeHostEvents, isOwn, isUntold } from "../domain/code-host-trigger.ts";
import { withEnvelope } from "../domain/envelope.ts";
import type { Factory } from "../domain/factory.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import type { Look } from "./decide-event.ts";

export type LookAtCodeHostDeliveryDeps = {
  deliveries: {
    /** Undefined: there is none, or it was forgotten. */
    codeHostDelivery(uid: string): Promise<CodeHostDelivery | undefined>;
  };
  factories: { find(uid: FactoryUid): Promise<Factory | undefined> };
  codeHosts: {
    /** What filters ask and payloads leave out. Errors: those of the code host. */
    describePullRequests(teamUid: string, codeHostUid: string, repository: string, numbers: readonly number[]): Promise<Attributes>;
  };
};

/** As many as can be asked about at once. */
const PULL_REQUESTS_MAX = 10;
const SOURCES = { github: "GITHUB_WEBHOOK", gitlab: "GITLAB_WEBHOOK" } as const;

/** A delivery of a code host. What a filter asks and its payload leaves out is asked of the code host, once for all automations. */
export async function lookAtCodeHostDelivery(deps: LookAtCodeHostDeliveryDeps, event: TriggerEvent, automations: readonly Automation[]): Promise<Look> {
  const uid = event.deliveryUid ?? event.uid;
  const delivery = await deps.deliveries.codeHostDelivery(uid);
  const factory = await deps.factories.find(as<FactoryUid>(event.factoryUid));
  const repositories = factory?.repositories ?? [];
  const triggers = automations.filter(({ enabled }) => enabled).flatMap(({ rules }) => rules.triggers);
  const told = await Promise.all((delivery ? codeHostEventsOf(delivery) : []).map(async (one) => (isOwn(one, repositories) && isUntold(one, triggers) ? completed(deps, event, one) : one)));
  const { code_host_uid: codeHostUid, delivery_id: deliveryId } = event.subject as { code_host_uid: string; delivery_id: string };
  return {
    check: checkCodeHostEvents(told, repositories),
    veto: () => undefined,
    tell: ({ rules }) => ({
      prompt: withEnvelope(
        rules.prompt, `${event.provider} event`,
        { events: [...new Set(told.map((one) => one.event))].join(", "), repository: told[0]!.repository.slice(0, 300), delivery: `${deliveryId} received ${event.occurredAt}` },
        jsonBytes(delivery!).length,
      ),
      source: SOURCES[event.provider as keyof typeof SOURCES], metadata: { code_host_uid: codeHostUid, delivery_id: deliveryId }, payload: { codeHostDeliveryUid: uid },
    }),
  };
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
