import { requireVerb, type Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { isUuid } from "@millwright/ids";
import { eventUidOf } from "../domain/automation.ts";
import type { ShownDecision } from "../domain/decision.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import { automationFact } from "../events/automation-events.ts";
import { originOf } from "../events/origin.ts";
import { findAutomation, type AutomationRef, type AutomationScopeDeps } from "./automation-scope.ts";
import { decideOne } from "./decide-event.ts";
import { lookAtDelivery, type LookAtDeliveryDeps } from "./look-at-delivery.ts";
import { started, type KeepToldDeps } from "./run-automation.ts";

export type ReplayDeliveryDeps = AutomationScopeDeps & LookAtDeliveryDeps & KeepToldDeps & { decisions: KeepToldDeps["decisions"] & { tell(fact: NewEvent): Promise<void> } };
export type ReplayAsked = AutomationRef & { webhookUid: string; deliveryUid: string; dryRun: boolean; idempotencyKey: string };

/**
 * Has one automation look at a stored delivery again, as it is now; unless it is a dry run, a match starts another run. Either
 * is told to the audit log.
 *
 * Errors: factory_not_found · automation_not_found · delivery_not_found (also of another webhook or factory) · payload_not_stored · not_authorized · automation_failed (conflict).
 */
export async function replayDelivery(deps: ReplayDeliveryDeps, caller: Caller, asked: ReplayAsked): Promise<{ decision: ShownDecision; wouldTrigger: boolean }> {
  const { factory, automation } = await findAutomation(deps, caller, asked, "webhook.manage");
  if (!asked.dryRun) requireVerb(caller, factory.teamUid, "run.create", "factory");
  const delivery = isUuid(asked.deliveryUid) ? await deps.deliveries.delivery(asked.deliveryUid.toLowerCase()) : undefined;
  if (!delivery || delivery.factoryUid !== factory.uid || delivery.webhookUid !== asked.webhookUid.toLowerCase()) throw notFound("delivery");
  if (!delivery.payload) throw invalidArgument("payload_not_stored", "Only accepted deliveries keep their payload.");
  const [origin, now] = [originOf(caller), deps.clock.now()];
  const event: TriggerEvent = {
    uid: eventUidOf(caller.principal.uid, `replay ${delivery.uid} ${automation.uid}`, asked.idempotencyKey), factoryUid: factory.uid, teamUid: factory.teamUid, provider: "webhook", event: "replayed",
    deliveryUid: delivery.uid, requestId: caller.requestId, occurredAt: now.toISOString(),
    subject: { webhook_uid: delivery.webhookUid, delivery_id: delivery.deliveryId, size_bytes: delivery.sizeBytes, replayed_by: origin.actor.uid },
  };
  const decision = decideOne(automation, await lookAtDelivery({ deliveries: { delivery: async () => delivery } }, event));
  const wouldTrigger = decision?.outcome === "pending";
  const more = { mode: "replay", event_uid: event.uid, delivery_uid: delivery.uid, dry_run: asked.dryRun, outcome: decision?.outcome ?? "not_listening" };
  const fact = automationFact("requested", automation, origin, more);
  if (!asked.dryRun) await deps.decisions.keepTold(event, decision ? [decision] : [], now, fact);
  else await deps.decisions.tell(fact);
  if (decision && !asked.dryRun) return { decision: await started(deps, event, automation.uid), wouldTrigger };
  const unheard = { outcome: "not_listening" as const, explanation: "None of its triggers is about such an event.", checks: [], runUid: null };
  return { decision: { ...unheard, ...decision, automationUid: automation.uid, automationName: automation.name, event, decidedAt: now }, wouldTrigger };
}
