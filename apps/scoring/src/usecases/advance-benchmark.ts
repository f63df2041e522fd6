import type { Clock } from "@millwright/clock";
import type { Database, Sql } from "@millwright/database";
import { appendEvents } from "@millwright/events";
import { enqueueAllWork } from "@millwright/work";
import { isFinished, type BenchmarkRunState } from "../domain/benchmark-run.ts";
import { causeOfAttempt, startableTrials, stateOf } from "../domain/trial.ts";
import { benchmarkRunFinished } from "../events/benchmark-events.ts";
import {
  countTrials,
  lockBenchmark,
  lockTeamLoad,
  setBenchmarkState,
  type BenchmarkLife,
} from "../store/benchmark-life-store.ts";
import { copyReplayedTrials, startPendingTrials, type AttemptRef } from "../store/trial-store.ts";

/** Kind of work item that creates the run of an attempt. Its key is the cause key of the run. */
export const START_TRIAL = "start-trial";
/** Kind of work item that reads the figures of a terminal trial and starts its judges. Its key is the trial. */
export const COMPLETE_TRIAL = "complete-trial";

export type AdvanceBenchmarkDeps = {
  readonly database: Database;
  readonly clock: Clock;
  /** Maximum number of concurrent trials of one team over all its benchmark runs. */
  readonly trialsPerTeam: number;
};

/**
 * Starts trials within the available capacity and updates the state of the benchmark run according to its trials and
 * scores. Everything happens under the lock of the benchmark run, so several replicas may call it concurrently; a
 * benchmark run that is locked by another transaction is skipped. Returns whether anything changed.
 */
export const advanceBenchmark = (
  { database, clock, trialsPerTeam }: AdvanceBenchmarkDeps,
  uid: string,
): Promise<boolean> =>
  database.transaction(async (tx) => {
    const run = await lockBenchmark(tx, uid, "SKIP LOCKED");
    if (!run || isFinished(run.state)) return false;
    const now = clock.now();
    if (run.state === "pending" && run.replayedRunUid !== null) await replay(tx, run, run.replayedRunUid, now);
    const started = await startTrials(tx, run, trialsPerTeam, now);
    const state = stateOf(await countTrials(tx, uid));
    if (state === run.state) return started > 0;
    await moveTo(tx, run, state, now);
    return true;
  });

/** Enqueues the creation of the runs of attempts, at `runAt` or immediately. */
export const enqueueStarts = (tx: Sql, teamUid: string, attempts: readonly AttemptRef[], runAt?: Date): Promise<void> =>
  enqueueAllWork(
    tx,
    attempts.map((attempt) => ({
      kind: START_TRIAL,
      key: causeOfAttempt(attempt.trialUid, attempt.attemptNumber),
      payload: { trial_uid: attempt.trialUid, attempt_number: attempt.attemptNumber },
      teamUid,
      runAt,
    })),
  );

export const enqueueCompletions = (tx: Sql, teamUid: string, trialUids: readonly string[]): Promise<void> =>
  enqueueAllWork(
    tx,
    trialUids.map((trialUid) => ({ kind: COMPLETE_TRIAL, key: trialUid, payload: { trial_uid: trialUid }, teamUid })),
  );

async function replay(tx: Sql, run: BenchmarkLife, replayedRunUid: string, now: Date): Promise<void> {
  await enqueueCompletions(tx, run.teamUid, await copyReplayedTrials(tx, run.uid, replayedRunUid, now));
}

async function startTrials(tx: Sql, run: BenchmarkLife, trialsPerTeam: number, now: Date): Promise<number> {
  const counts = await countTrials(tx, run.uid);
  if (counts.pending === 0 || counts.running >= run.parallelism) return 0;
  const limit = startableTrials(counts, run.parallelism, await lockTeamLoad(tx, run.teamUid), trialsPerTeam);
  const started = limit > 0 ? await startPendingTrials(tx, run.uid, limit, now) : [];
  await enqueueStarts(tx, run.teamUid, started);
  return started.length;
}

async function moveTo(tx: Sql, run: BenchmarkLife, state: BenchmarkRunState, now: Date): Promise<void> {
  await setBenchmarkState(tx, run.uid, state, now, ...(state === "failed" ? [EVERY_TRIAL_FAILED] : []));
  if (isFinished(state)) await appendEvents(tx, [benchmarkRunFinished(run, state)]);
}

const EVERY_TRIAL_FAILED =
  "Every trial failed because of the platform's infrastructure, so no trial is evidence about its agent.";
