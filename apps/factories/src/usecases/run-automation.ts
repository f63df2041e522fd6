import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { bestEffort, DomainError, type WarnLog } from "@millwright/errors";
import { automationDisabled, eventUidOf } from "../domain/automation.ts";
import type { Decision, DecisionRef, ShownDecision } from "../domain/decision.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import { automationEvent } from "../events/automation-events.ts";
import { originOf } from "../events/origin.ts";
import type { DecisionStore } from "../store/decision-store.ts";
import { automationOf, type AutomationRef, type AutomationScopeDeps } from "./automation-scope.ts";
import { runInputOf } from "./decide-event.ts";
import { findFactory } from "./scope.ts";

export type StartDecisionDeps = {
  decisions: Pick<DecisionStore, "insertWithEvent" | "findEvent" | "list">;
  /** Starts the run of a pending decision. */
  start(ref: DecisionRef): Promise<void>;
  clock: Clock;
  log: WarnLog;
};

export type RunAutomationDeps = AutomationScopeDeps & StartDecisionDeps;

/**
 * Starts a run of an automation for the caller, regardless of its triggers. A retry with the same key returns the same
 * run, even if the automation was disabled or deleted since.
 * Errors: factory_not_found · automation_not_found · not_authorized · automation_disabled (conflict) ·
 * automation_failed (conflict: its run cannot be created).
 */
export async function runAutomation(
  deps: RunAutomationDeps,
  caller: Caller,
  ref: AutomationRef & { idempotencyKey: string },
): Promise<ShownDecision> {
  const factory = await findFactory(deps, caller, ref.factoryUid, "run.create");
  const automationUid = ref.automationUid.toLowerCase();
  const eventUid = eventUidOf(caller.principal.uid, `run-automation ${automationUid}`, ref.idempotencyKey);
  const first = ref.idempotencyKey === "" ? undefined : await deps.decisions.findEvent(factory.uid, eventUid);
  if (first) return started(deps, first.event, automationUid);
  const automation = await automationOf(deps, factory, automationUid);
  if (!automation.enabled) throw automationDisabled();
  const origin = originOf(caller);
  const now = deps.clock.now();
  const event: TriggerEvent = {
    uid: eventUid,
    factoryUid: factory.uid,
    teamUid: factory.teamUid,
    provider: "manual",
    event: "run_now",
    deliveryUid: null,
    subject: { requested_by: origin.actor.uid },
    requestId: caller.requestId,
    occurredAt: now.toISOString(),
  };
  const runInput = runInputOf(
    { ...automation, creator: origin.actor },
    { prompt: automation.rules.prompt, source: "API", metadata: {} },
  );
  const decision: Decision = {
    automationUid: automation.uid,
    automationName: automation.name,
    outcome: "pending",
    explanation: "A user started it manually.",
    checks: [],
    runInput,
    runUid: null,
  };
  await deps.decisions.insertWithEvent(
    event,
    [decision],
    now,
    automationEvent("run_requested", automation, origin, { mode: "run_now", event_uid: event.uid }),
  );
  return started(deps, event, automation.uid);
}

/**
 * Starts the run immediately if possible and returns the decision's state. Otherwise the enqueued work starts it later.
 * Errors: automation_failed.
 */
export async function started(
  deps: StartDecisionDeps,
  event: TriggerEvent,
  automationUid: string,
): Promise<ShownDecision> {
  await bestEffort("start the run of a decision", deps.log, () =>
    deps.start({ factoryUid: event.factoryUid, eventUid: event.uid, automationUid }),
  );
  const [shown] = await deps.decisions.list({
    factoryUid: event.factoryUid,
    automationUid,
    eventUid: event.uid,
    limit: 1,
  });
  if (!shown)
    throw new DomainError({
      kind: "internal",
      reason: "decision_missing",
      message: "The decision on the event was not stored. Retry.",
    });
  if (shown.outcome === "failed")
    throw new DomainError({ kind: "conflict", reason: "automation_failed", message: shown.explanation });
  return shown;
}
