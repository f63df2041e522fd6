import type { Clock } from "@millwright/clock";
import type { Database, Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { WorkHandler } from "@millwright/work";
import { isInScope, whyNotScoreable, type ScoredRun } from "../domain/eligibility.ts";
import { isSampled } from "../domain/sampling.ts";
import type { Scorer } from "../domain/scorer.ts";
import { attemptedKey, attemptedVersions } from "../store/attempt-store.ts";
import { forgetFinishedRuns, lockAutomaticScorers } from "../store/scored-run-store.ts";
import { factsOf, startAttempts, type AttemptRequest } from "./start-attempts.ts";

/** Kind of work item that scores finished runs automatically. Its key is the uid of the first run's event. */
export const SCORE_RUNS_WORK = "score-runs";

/** Payload of the work item: runs of one team, each with its version at the end. */
export type ScoreRuns = { readonly runs: readonly { readonly runUid: string; readonly version: number }[] };

export type ScoreRunsDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly runs: { describe(runUids: readonly string[]): Promise<ScoredRun[]> };
};

/**
 * Returns a handler that starts the automatic attempts of finished runs. Runs whose version has changed are left out,
 * because their next end has its own work item. Scorers that have attempted a version are skipped, so that the handler
 * may execute twice.
 *
 * Errors: attempt_in_flight (unavailable, retried): a scorer is judging an earlier end of a run.
 */
export const scoreRuns =
  (deps: ScoreRunsDeps): WorkHandler =>
  async (item, context) => {
    const { runs } = item.payload as ScoreRuns;
    const described = new Map(
      (await deps.runs.describe(runs.map(({ runUid }) => runUid))).map((run) => [run.uid, run]),
    );
    const ended = runs.flatMap(({ runUid, version }) =>
      described.get(runUid)?.version === version ? [described.get(runUid)!] : [],
    );
    const isWaiting = await deps.database.transaction(async (tx) => {
      if ((await startAutomatic(tx, ended, deps.clock.now())) > 0) return true;
      await forgetFinishedRuns(tx, runs);
      await context.finish(tx);
      return false;
    });
    if (isWaiting)
      throw new DomainError({
        kind: "unavailable",
        reason: "attempt_in_flight",
        message: "A judge of an earlier attempt of this run is still active. Retry after 30 seconds.",
        retryAfterSeconds: 30,
      });
  };

/**
 * Starts the attempts. Returns the number of attempts that could not start because their scorer is judging an earlier
 * end.
 */
async function startAutomatic(tx: Sql, runs: readonly ScoredRun[], now: Date): Promise<number> {
  const factoryUids = [...new Set(runs.map(({ factoryUid }) => factoryUid).filter((uid) => uid !== ""))];
  if (factoryUids.length === 0) return 0;
  const scorers = await lockAutomaticScorers(tx, factoryUids);
  const attempted = await attemptedVersions(
    tx,
    runs.map(({ uid }) => uid),
  );
  const requests = runs.flatMap((run) =>
    scorers
      .filter(
        (scorer) =>
          scorer.factoryUid === run.factoryUid &&
          isDue(scorer, run) &&
          (attempted.get(attemptedKey(scorer.uid, run.uid)) ?? -1) < run.version,
      )
      .map((scorer): AttemptRequest => ({
        scorer,
        run: factsOf(run),
        trigger: "automatic",
        requester: scorer.creator,
      })),
  );
  return (await startAttempts(tx, requests, now)).filter(({ outcome }) => outcome === "in_flight").length;
}

const isDue = (scorer: Scorer, run: ScoredRun): boolean =>
  whyNotScoreable(run, { uid: scorer.factoryUid, teamUid: scorer.teamUid }) === undefined &&
  isInScope(run, scorer) &&
  isSampled(scorer.uid, run.uid, scorer.samplingRate);
