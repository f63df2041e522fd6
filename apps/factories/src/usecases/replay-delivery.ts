import { requireVerb, type Caller } from "@millwright/caller";
import { invalidArgument, notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import { eventUidOf, type Automation } from "../domain/automation.ts";
import { NOT_LISTENING_EXPLANATION, type Outcome, type ShownDecision } from "../domain/decision.ts";
import type { Factory } from "../domain/factory.ts";
import type { StoredCodeHostDelivery, StoredDelivery } from "../domain/stored-delivery.ts";
import { REPLAYED, type TriggerEvent } from "../domain/trigger-event.ts";
import { automationEvent } from "../events/automation-events.ts";
import { originOf } from "../events/origin.ts";
import type { DecisionStore } from "../store/decision-store.ts";
import { automationOf, type AutomationRef, type AutomationScopeDeps } from "./automation-scope.ts";
import { decideOne, type Evaluators } from "./decide-event.ts";
import type { EvaluateCodeHostDeliveryDeps } from "./evaluate-code-host-delivery.ts";
import type { EvaluateDeliveryDeps } from "./evaluate-delivery.ts";
import { started, type StartDecisionDeps } from "./run-automation.ts";
import { findFactory } from "./scope.ts";

export type ReplayDeliveryDeps = AutomationScopeDeps &
  StartDecisionDeps & {
    decisions: StartDecisionDeps["decisions"] & Pick<DecisionStore, "publish">;
    deliveries: {
      /** Returns a delivery, or undefined if it is absent or pruned. */
      delivery(uid: string): Promise<StoredDelivery | undefined>;
      codeHostEntry(uid: string): Promise<StoredCodeHostDelivery | undefined>;
    };
    /**
     * Returns evaluators with known deliveries. `queriesCodeHost`: whether they query the code host for filters;
     * default true.
     */
    evaluatorsWith(known?: Partial<KnownDeliveries>, queriesCodeHost?: boolean): Evaluators;
  };
type KnownDeliveries = EvaluateDeliveryDeps["deliveries"] & EvaluateCodeHostDeliveryDeps["deliveries"];
/**
 * A delivery to a webhook of the factory, or to a code-host connection of its team. The uid of the other kind is "".
 */
export type ReplayRequest = AutomationRef & {
  webhookUid: string;
  codeHostUid: string;
  deliveryUid: string;
  dryRun: boolean;
  idempotencyKey: string;
};

type Replay = { decision: ShownDecision; wouldTrigger: boolean };

/**
 * Evaluates a stored delivery again with the current state of one automation. Unless it is a dry run, a match starts
 * another run, or continues the task that is bound to the item. Both are recorded in the audit log. A retry with the
 * same key returns the first decision, even if the delivery was pruned or the automation was changed or deleted since.
 * Errors: factory_not_found · automation_not_found · delivery_not_found (also of another webhook, connection, factory
 * or team) · payload_not_stored · not_authorized · automation_failed (conflict) · those of a code host that does not
 * return data that a filter requires.
 */
export async function replayDelivery(
  deps: ReplayDeliveryDeps,
  caller: Caller,
  request: ReplayRequest,
): Promise<Replay> {
  const verb = request.codeHostUid === "" ? "webhook.manage" : "factory.manage";
  const factory = await findFactory(deps, caller, request.factoryUid, verb);
  if (!request.dryRun) requireVerb(caller, factory.teamUid, "run.create", "factory");
  const [deliveryUid, automationUid] = [request.deliveryUid.toLowerCase(), request.automationUid.toLowerCase()];
  const eventUid = eventUidOf(caller.principal.uid, `replay ${deliveryUid} ${automationUid}`, request.idempotencyKey);
  const first =
    request.dryRun || request.idempotencyKey === "" ? undefined : await findReplay(deps, factory, request, eventUid);
  if (first) return first;
  const automation = await automationOf(deps, factory, automationUid);
  const { provider, receivedAt, subject, known } = await findDelivery(deps, factory, request);
  const [origin, now] = [originOf(caller), deps.clock.now()];
  const event: TriggerEvent = {
    uid: eventUid,
    factoryUid: factory.uid,
    teamUid: factory.teamUid,
    provider,
    event: REPLAYED,
    deliveryUid,
    requestId: caller.requestId,
    occurredAt: now.toISOString(),
    subject: { ...subject, replayed_by: origin.actor.uid },
  };
  const evaluators = deps.evaluatorsWith(known);
  const evaluation = await evaluators[provider]?.({ ...event, occurredAt: receivedAt.toISOString() }, [automation]);
  const decision = evaluation && decideOne(automation, evaluation);
  if (decision?.isDelayed && evaluation?.delay) throw evaluation.delay;
  const more = {
    mode: "replay",
    event_uid: event.uid,
    delivery_uid: deliveryUid,
    dry_run: request.dryRun,
    outcome: decision?.outcome ?? "not_listening",
  };
  const auditEvent = automationEvent("run_requested", automation, origin, more);
  if (!request.dryRun) await deps.decisions.insertWithEvent(event, decision ? [decision] : [], now, auditEvent);
  else await deps.decisions.publish(auditEvent);
  if (decision && !request.dryRun) return replayOf(await started(deps, event, automation.uid));
  return replayOf({ ...notListening(automation, event, now), ...decision });
}

/** Returns the result of an earlier request with the same key for this webhook or connection, or undefined. */
async function findReplay(
  deps: ReplayDeliveryDeps,
  factory: Factory,
  request: ReplayRequest,
  eventUid: string,
): Promise<Replay | undefined> {
  const found = await deps.decisions.findEvent(factory.uid, eventUid);
  const [member, sourceUid] =
    request.codeHostUid === "" ? ["webhook_uid", request.webhookUid] : ["code_host_uid", request.codeHostUid];
  if (found?.event.subject[member] !== sourceUid.toLowerCase()) return undefined;
  const automationUid = request.automationUid.toLowerCase();
  const stored = await deps.decisions.list({ factoryUid: factory.uid, automationUid, eventUid, limit: 1 });
  if (stored.length > 0) return replayOf(await started(deps, found.event, automationUid));
  return replayOf(notListening(await automationOf(deps, factory, automationUid), found.event, found.decidedAt));
}

const TRIGGERED: ReadonlySet<Outcome | "not_listening"> = new Set(["pending", "fired", "continued"]);
const replayOf = (decision: ShownDecision): Replay => ({ decision, wouldTrigger: TRIGGERED.has(decision.outcome) });

const notListening = ({ uid, name }: Automation, event: TriggerEvent, decidedAt: Date): ShownDecision => ({
  automationUid: uid,
  automationName: name,
  outcome: "not_listening",
  explanation: NOT_LISTENING_EXPLANATION,
  checks: [],
  runUid: null,
  event,
  decidedAt,
  nextAttemptAt: null,
});

/** Returns the event of a delivery with its content. Errors: delivery_not_found · payload_not_stored. */
async function findDelivery(
  { deliveries }: ReplayDeliveryDeps,
  factory: Factory,
  request: ReplayRequest,
): Promise<{ provider: string; receivedAt: Date; subject: JsonObject; known: Partial<KnownDeliveries> }> {
  const uid = request.deliveryUid.toLowerCase();
  if (!isUuid(uid)) throw notFound("delivery");
  if (request.codeHostUid === "") {
    const found = await deliveries.delivery(uid);
    if (!found || found.factoryUid !== factory.uid || found.webhookUid !== request.webhookUid.toLowerCase())
      throw notFound("delivery");
    if (!found.payload) throw notStored();
    const subject = { webhook_uid: found.webhookUid, delivery_id: found.deliveryId, size_bytes: found.sizeBytes };
    return { provider: "webhook", receivedAt: found.receivedAt, subject, known: { delivery: async () => found } };
  }
  const found = await deliveries.codeHostEntry(uid);
  if (!found || found.teamUid !== factory.teamUid || found.codeHostUid !== request.codeHostUid.toLowerCase())
    throw notFound("delivery");
  if (!found.content) throw notStored();
  const subject = { code_host_uid: found.codeHostUid, delivery_id: found.deliveryId, size_bytes: found.sizeBytes };
  return {
    provider: found.provider,
    receivedAt: found.receivedAt,
    subject,
    known: { codeHostDelivery: async () => found.content },
  };
}

const notStored = () => invalidArgument("payload_not_stored", "The payload is stored only for accepted deliveries.");
