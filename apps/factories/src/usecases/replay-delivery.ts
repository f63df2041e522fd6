import { requireVerb, type Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { isUuid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import { eventUidOf } from "../domain/automation.ts";
import type { ShownDecision } from "../domain/decision.ts";
import type { Factory } from "../domain/factory.ts";
import type { StoredCodeHostDelivery, StoredDelivery } from "../domain/stored-delivery.ts";
import { REPLAYED, type TriggerEvent } from "../domain/trigger-event.ts";
import { automationFact } from "../events/automation-events.ts";
import { originOf } from "../events/origin.ts";
import { findAutomation, type AutomationRef, type AutomationScopeDeps } from "./automation-scope.ts";
import { decideOne, type Looks } from "./decide-event.ts";
import type { LookAtCodeHostDeliveryDeps } from "./look-at-code-host-delivery.ts";
import type { LookAtDeliveryDeps } from "./look-at-delivery.ts";
import { started, type KeepToldDeps } from "./run-automation.ts";

export type ReplayDeliveryDeps = AutomationScopeDeps &
  KeepToldDeps & {
    decisions: KeepToldDeps["decisions"] & { tell(fact: NewEvent): Promise<void> };
    deliveries: {
      /** Undefined: there is none, or it was forgotten. */
      delivery(uid: string): Promise<StoredDelivery | undefined>;
      codeHostEntry(uid: string): Promise<StoredCodeHostDelivery | undefined>;
    };
    /** Looks for which some deliveries are known already. `asks`: they ask the code host for what filters need; by default they do. */
    looksWith(known?: Partial<KnownDeliveries>, asks?: boolean): Looks;
  };
type KnownDeliveries = LookAtDeliveryDeps["deliveries"] & LookAtCodeHostDeliveryDeps["deliveries"];
/** Of a webhook of the factory, or of a code-host connection of its team; "" = not that. */
export type ReplayAsked = AutomationRef & {
  webhookUid: string;
  codeHostUid: string;
  deliveryUid: string;
  dryRun: boolean;
  idempotencyKey: string;
};

/**
 * Has one automation look at a stored delivery again, as it is now; unless it is a dry run, a match starts another run, or continues the
 * task that is bound to the item. Either is told to the audit log.
 *
 * Errors: factory_not_found · automation_not_found · delivery_not_found (also of another webhook, connection, factory or team) · payload_not_stored · not_authorized · automation_failed (conflict)
 *   · those of a code host that does not answer what a filter needs.
 */
export async function replayDelivery(
  deps: ReplayDeliveryDeps,
  caller: Caller,
  asked: ReplayAsked,
): Promise<{ decision: ShownDecision; wouldTrigger: boolean }> {
  const { factory, automation } = await findAutomation(
    deps,
    caller,
    asked,
    asked.codeHostUid === "" ? "webhook.manage" : "factory.manage",
  );
  if (!asked.dryRun) requireVerb(caller, factory.teamUid, "run.create", "factory");
  const { provider, receivedAt, subject, known } = await findDelivery(deps, factory, asked);
  const [origin, now, deliveryUid] = [originOf(caller), deps.clock.now(), asked.deliveryUid.toLowerCase()];
  const event: TriggerEvent = {
    uid: eventUidOf(caller.principal.uid, `replay ${deliveryUid} ${automation.uid}`, asked.idempotencyKey),
    factoryUid: factory.uid,
    teamUid: factory.teamUid,
    provider,
    event: REPLAYED,
    deliveryUid,
    requestId: caller.requestId,
    occurredAt: now.toISOString(),
    subject: { ...subject, replayed_by: origin.actor.uid },
  };
  const evaluators = deps.looksWith(known);
  const look = await evaluators[provider]?.({ ...event, occurredAt: receivedAt.toISOString() }, [automation]);
  const decision = look && decideOne(automation, look);
  if (decision?.isDelayed && look?.delay) throw look.delay;
  const wouldTrigger = decision?.outcome === "pending";
  const more = {
    mode: "replay",
    event_uid: event.uid,
    delivery_uid: deliveryUid,
    dry_run: asked.dryRun,
    outcome: decision?.outcome ?? "not_listening",
  };
  const fact = automationFact("requested", automation, origin, more);
  if (!asked.dryRun) await deps.decisions.keepTold(event, decision ? [decision] : [], now, fact);
  else await deps.decisions.tell(fact);
  if (decision && !asked.dryRun) return { decision: await started(deps, event, automation.uid), wouldTrigger };
  const unheard = {
    outcome: "not_listening" as const,
    explanation: "None of its triggers is about such an event.",
    checks: [],
    runUid: null,
  };
  return {
    decision: {
      ...unheard,
      ...decision,
      automationUid: automation.uid,
      automationName: automation.name,
      event,
      decidedAt: now,
      nextAttemptAt: null,
    },
    wouldTrigger,
  };
}

/** Who told of it, when, what is known of it, and itself. Errors: delivery_not_found · payload_not_stored. */
async function findDelivery(
  { deliveries }: ReplayDeliveryDeps,
  factory: Factory,
  asked: ReplayAsked,
): Promise<{ provider: string; receivedAt: Date; subject: JsonObject; known: Partial<KnownDeliveries> }> {
  const uid = asked.deliveryUid.toLowerCase();
  if (!isUuid(uid)) throw notFound("delivery");
  if (asked.codeHostUid === "") {
    const found = await deliveries.delivery(uid);
    if (!found || found.factoryUid !== factory.uid || found.webhookUid !== asked.webhookUid.toLowerCase())
      throw notFound("delivery");
    if (!found.payload) throw notStored();
    const subject = { webhook_uid: found.webhookUid, delivery_id: found.deliveryId, size_bytes: found.sizeBytes };
    return { provider: "webhook", receivedAt: found.receivedAt, subject, known: { delivery: async () => found } };
  }
  const found = await deliveries.codeHostEntry(uid);
  if (!found || found.teamUid !== factory.teamUid || found.codeHostUid !== asked.codeHostUid.toLowerCase())
    throw notFound("delivery");
  if (!found.told) throw notStored();
  const subject = { code_host_uid: found.codeHostUid, delivery_id: found.deliveryId, size_bytes: found.sizeBytes };
  return {
    provider: found.provider,
    receivedAt: found.receivedAt,
    subject,
    known: { codeHostDelivery: async () => found.told },
  };
}

const notStored = () => invalidArgument("payload_not_stored", "Only accepted deliveries keep their payload.");
