import type { Clock } from "@millwright/clock";
import { isDomainError } from "@millwright/errors";
import type { Automation } from "../domain/automation.ts";
import type { Decision, Delayed, DelayedRef } from "../domain/decision.ts";
import { isPassing } from "../domain/passing.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import { decideOne, delayOf, type Look, type Looks } from "./decide-event.ts";

export type DecideDelayedDeps<Tx> = {
  /** They ask the code host. */
  looks: Looks;
  automations: { listeningTo(factoryUid: string, provider: string): Promise<Automation[]> };
  decisions: {
    /** The decisions of an event that wait for the code host; undefined: none. */
    delayed(ref: DelayedRef): Promise<Delayed | undefined>;
    /** Stores what became of delayed decisions, and work for those that stay delayed, due after `delaySeconds`. A decision that is no longer delayed stays. */
    resolve(
      ref: DelayedRef,
      event: TriggerEvent,
      decisions: readonly Decision[],
      at: { now: Date; delaySeconds: number },
      finish: (tx: Tx) => Promise<void>,
    ): Promise<void>;
  };
  clock: Clock;
};

/** Pauses after the first attempts; then one hour between any two. */
const PAUSES_SECONDS = [5, 15, 60, 300, 900];
const PAUSE_SECONDS_MAX = 3_600;
/** About a day. */
const ATTEMPTS_MAX = 28;

/**
 * Decides what was delayed about an event, once the code host answers; until then it stays pending, with the reason and the time
 * of the next attempt. `finish` ends this work in the transaction that stores the outcome: a process that dies, or a second
 * replica, decides nothing twice.
 *
 * Errors: those of this service's own database.
 */
export async function decideDelayed<Tx>(
  deps: DecideDelayedDeps<Tx>,
  ref: DelayedRef,
  finish: (tx: Tx) => Promise<void>,
): Promise<void> {
  const delayed = await deps.decisions.delayed(ref);
  if (!delayed) return;
  const { event } = delayed;
  const waiting = new Set<string>(delayed.automations.map(({ uid }) => uid));
  const automations = (await deps.automations.listeningTo(event.factoryUid, event.provider)).filter(({ uid }) =>
    waiting.has(uid),
  );
  const look = await lookAt(deps, event, automations);
  const decisions = delayed.automations.map((one) => {
    const automation = automations.find(({ uid }) => uid === one.uid);
    return ended(
      ref,
      automation && "check" in look
        ? (decideOne(automation, look) ?? unheard(one))
        : automation
          ? waits(one, look.delay)
          : unheard(one),
    );
  });
  await deps.decisions.resolve(
    ref,
    event,
    decisions,
    { now: deps.clock.now(), delaySeconds: pauseAfter(ref.attempt, look.delay?.retryAfterSeconds ?? 0) },
    finish,
  );
}

/** Without a `check`: something of the platform's own could not be reached. */
async function lookAt<Tx>(
  { looks }: DecideDelayedDeps<Tx>,
  event: TriggerEvent,
  automations: readonly Automation[],
): Promise<Look | Pick<Look, "delay">> {
  const look = looks[event.provider];
  if (automations.length === 0 || !look) return {};
  return look(event, automations).catch((error: unknown) => {
    if (!isDomainError(error) || !isPassing(error)) throw error;
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
  order: null,
  runUid: null,
});

const waits = (automation: Named, delay: Look["delay"]): Decision => ({
  ...of(automation),
  outcome: "pending",
  explanation: delayOf(delay),
  isDelayed: true,
});

const unheard = (automation: Named): Decision => ({
  ...of(automation),
  outcome: "not_matched",
  explanation: "The automation was deleted, or stopped listening to such events, before the code host answered.",
});

/** A decision that has waited for about a day ends. */
const ended = ({ attempt }: DelayedRef, decision: Decision): Decision => {
  if (!decision.isDelayed || attempt < ATTEMPTS_MAX) return decision;
  const { isDelayed: _, ...rest } = decision;
  return {
    ...rest,
    outcome: "failed",
    explanation: `It was not decided after ${attempt} attempts. ${decision.explanation} Replay the delivery to try again.`,
  };
};
