import type { Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";
import { enqueueAllWork } from "@millwright/work";
import { captureConfig, type ConfigOverrides, type JudgeSource } from "../domain/attempt-config.ts";
import type { AttemptUid, TriggerSource } from "../domain/attempt.ts";
import type { ScoredRun } from "../domain/eligibility.ts";
import { findInFlight, insertAttempts, lockPairs, type NewAttempt } from "../store/attempt-store.ts";
import { markTrialScoresPending } from "../store/trial-score-states.ts";

/** Kind of work item that judges one attempt. Its key and payload identify the attempt. */
export const JUDGE_WORK = "judge";

/** The members of the evaluated run that an attempt records. */
export type RunFacts = {
  readonly uid: string;
  /** Version of the run's state, which increases when the run continues. */
  readonly version: number;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** The agent that executed it. */
  readonly agentUid: string | null;
  readonly conversationUid: string | null;
  readonly title: string;
};

export type AttemptRequest = ConfigOverrides & {
  readonly scorer: JudgeSource;
  readonly run: RunFacts;
  readonly trigger: TriggerSource;
  /** The principal on whose behalf the judge run is created. */
  readonly requester: { readonly type: string; readonly uid: string };
  readonly trialUid?: string | undefined;
};

/**
 * `started`: a new attempt was started. `in_flight`: an attempt of the pair has not ended; it continues, and no new
 * attempt was started. `scorer_deleted`: nothing was started.
 */
export type StartedAttempt =
  | { readonly outcome: "started" | "in_flight"; readonly attemptUid: AttemptUid }
  | { readonly outcome: "scorer_deleted" };

/**
 * Starts attempts in the caller's transaction and enqueues their judges. Automatic, manual and benchmark scoring all
 * start attempts here. Returns one outcome per request, in the same order. The configuration of the judge is captured
 * at this time.
 */
export async function startAttempts(
  tx: Sql,
  requests: readonly AttemptRequest[],
  now: Date,
): Promise<StartedAttempt[]> {
  if (requests.length === 0) return [];
  const attempts = requests.map((request) => newAttempt(request, now));
  await lockPairs(tx, attempts);
  const inserted = await insertAttempts(tx, attempts);
  const started = attempts.filter(({ uid }) => inserted.has(uid));
  await enqueueAllWork(
    tx,
    started.map(({ uid, teamUid }) => ({ kind: JUDGE_WORK, key: uid, payload: { attemptUid: uid }, teamUid })),
  );
  await markTrialScoresPending(tx, started);
  const inFlight = started.length === attempts.length ? [] : await findInFlight(tx, attempts);
  return attempts.map((attempt): StartedAttempt => {
    if (inserted.has(attempt.uid)) return { outcome: "started", attemptUid: attempt.uid };
    const other = inFlight.find(
      ({ scorerUid, runUid }) => scorerUid === attempt.scorerUid && runUid === attempt.runUid,
    );
    return other ? { outcome: "in_flight", attemptUid: other.uid } : { outcome: "scorer_deleted" };
  });
}

function newAttempt(
  { scorer, run, trigger, requester, trialUid, ...overrides }: AttemptRequest,
  now: Date,
): NewAttempt {
  return {
    uid: newUid<AttemptUid>(),
    scorerUid: scorer.uid,
    runUid: run.uid,
    factoryUid: run.factoryUid,
    teamUid: run.teamUid,
    agentUid: run.agentUid,
    conversationUid: run.conversationUid,
    title: run.title,
    trialUid: trialUid ?? null,
    triggerSource: trigger,
    requester: { type: requester.type, uid: requester.uid },
    config: captureConfig(scorer, overrides),
    runVersion: run.version,
    attemptedAt: now,
  };
}

/** Returns the members of a team's run that an attempt records. */
export const factsOf = (run: ScoredRun): RunFacts => ({
  uid: run.uid,
  version: run.version,
  factoryUid: run.factoryUid,
  teamUid: run.ownerUid,
  agentUid: run.agentUid || null,
  conversationUid: run.conversationUid || null,
  title: run.title,
});
