import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import type { Automation } from "../domain/automation.ts";
import type { Decision, Delayed, DelayedRef } from "../domain/decision.ts";
import { isTransientError } from "../domain/transient.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import type { AutomationStore } from "../store/automation-store.ts";
import type { DecisionStore } from "../store/decision-store.ts";
import { decideOne, delayOf, type EventEvaluation, type Evaluators } from "./decide-event.ts";

export type DecideDelayedDeps = {
  /** Evaluators that query the code host. */
  evaluators: Evaluators;
  automations: Pick<AutomationStore, "listByProvider">;
  decisions: Pick<DecisionStore, "delayed" | "resolve">;
  clock: Clock;
};

/** The delays after the first attempts; later delays are one hour. */
const PAUSES_SECONDS = [5, 15, 60, 300, 900];
const PAUSE_SECONDS_MAX = 3_600;
/** The maximum number of attempts, which take about a day. */
const ATTEMPTS_MAX = 28;

/**
 * Decides the delayed decisions of an event when the code host responds. Until then they stay pending, with the reason
 * and the time of the next attempt. `finish` finishes this work in the transaction that stores the result, so that a
 * crash or a second replica repeats nothing.
 * Errors: those of this service's own database.
 */
export async function decideDelayed(
  deps: DecideDelayedDeps,
  ref: DelayedRef,
  finish: (tx: Sql) => Promise<void>,
): Promise<void> {
  const delayed = await deps.decisions.delayed(ref);
  if (!delayed) return;
  const { event } = delayed;
  const waiting = new Set<string>(delayed.automations.map(({ uid }) => uid));
  const automations = (await deps.automations.listByProvider(event.factoryUid, event.provider)).filter(({ uid }) =>
    waiting.has(uid),
  );
  const evaluation = await evaluate(deps, event, automations);
  const decisions = delayed.automations.map((named) => {
    const automation = automations.find(({ uid }) => uid === named.uid);
    return ended(
      ref,
      automation && "check" in evaluation
        ? (decideOne(automation, evaluation) ?? noLongerListening(named))
        : automation
          ? waits(named, evaluation.delay)
          : noLongerListening(named),
    );
  });
  await deps.decisions.resolve(
    ref,
    event,
    decisions,
    { now: deps.clock.now(), delaySeconds: pauseAfter(ref.attempt, evaluation.delay?.retryAfterSeconds ?? 0) },
    finish,
  );
}

/** Returns the evaluation of an event, without `check` if an upstream service is unavailable. */
async function evaluate(
  { evaluators }: DecideDelayedDeps,
  event: TriggerEvent,
  automations: readonly Automation[],
): Promise<EventEvaluation | Pick<EventEvaluation, "delay">> {
  const evaluator = evaluators[event.provider];
  if (automations.length === 0 || !evaluator) return {};
  return evaluator(event, automations).catch((error: unknown) => {
    if (!isDomainError(error) || !isTransientError(error)) throw error;
    return { delay: error };
  });
}

const pauseAfter = (attempt: number, retryAfterSeconds: number): number =>
  Math.max(PAUSES_SECONDS[attempt - 1] ?? PAUSE_SECONDS_MAX, retryAfterSeconds) * (1 + Math.random() / 4);

type Named = Delayed["automations"][number];
const of = ({ uid, name }: Named) => ({
  automationUid: uid,
  automationName: name,
  checks: [],
  runInput: null,
  runUid: null,
});

const waits = (automation: Named, delay: EventEvaluation["delay"]): Decision => ({
  ...of(automation),
  outcome: "pending",
  explanation: delayOf(delay),
  isDelayed: true,
});

const noLongerListening = (automation: Named): Decision => ({
  ...of(automation),
  outcome: "not_matched",
  explanation:
    "The automation was deleted, or its triggers for this kind of event were removed, before the code host responded.",
});

/** Returns the decision, or a failed one if it is still delayed after about a day. */
const ended = ({ attempt }: DelayedRef, decision: Decision): Decision => {
  if (!decision.isDelayed || attempt < ATTEMPTS_MAX) return decision;
  const { isDelayed: _, ...rest } = decision;
  return {
    ...rest,
    outcome: "failed",
    explanation: `It was not decided after ${attempt} attempts. ${decision.explanation} Replay the delivery to try again.`,
  };
};
