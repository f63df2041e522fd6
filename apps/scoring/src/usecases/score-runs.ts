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

/** Kind of work that scores ends of runs automatically; its key is the uid of the first one's event. */
export const SCORE_RUNS_WORK = "score-runs";

/** Payload of the work: runs of one team, each with the version in which it ended. */
export type ScoreRuns = { readonly runs: readonly { readonly runUid: string; readonly version: number }[] };

export type ScoreRunsDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly runs: { describe(runUids: readonly string[]): Promise<ScoredRun[]> };
};

/**
 * Starts the automatic attempts of runs that have ended. Leaves out runs that have moved on: their next end has work of its own. Scorers that have
 * attempted an end before are skipped, so that it may run twice.
 *
 * Errors: attempt_in_flight (unavailable, retried): a scorer still judges an earlier end of a run.
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
        message: "A judge of an earlier end of the run has not ended.",
        retryAfterSeconds: 30,
      });
  };

/** Returns how many attempts could not start as their scorer still judges an earlier end. */
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
