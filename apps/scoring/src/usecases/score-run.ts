import type { Clock } from "@millwright/clock";
import type { Database, Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { WorkHandler } from "@millwright/work";
import { isInScope, whyNotScoreable, type ScoredRun } from "../domain/eligibility.ts";
import { isSampled } from "../domain/sampling.ts";
import { attemptedVersions } from "../store/attempt-store.ts";
import { forgetFinishedRun, lockAutomaticScorers } from "../store/scored-run-store.ts";
import { factsOf, startAttempts } from "./start-attempts.ts";

/** Kind of work that scores one end of a run automatically; its key is the run with its version. */
export const SCORE_RUN_WORK = "score-run";

export type ScoreRunDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly runs: { describe(runUids: readonly string[]): Promise<ScoredRun[]> };
};

/**
 * Starts the automatic attempts of a run that has ended. Does nothing when the run has moved on: its next end has work of its own. Scorers that have
 * attempted this end before are skipped, so that it may run twice.
 *
 * Errors: attempt_in_flight (unavailable, retried): a scorer still judges an earlier end of the run.
 */
export const scoreRun = (deps: ScoreRunDeps): WorkHandler => async (item, context) => {
  const { runUid, version } = item.payload as { runUid: string; version: number };
  const [run] = await deps.runs.describe([runUid]);
  const isWaiting = await deps.database.transaction(async (tx) => {
    const inFlight = run?.version === version ? await startAutomatic(deps, tx, run) : 0;
    if (inFlight > 0) return true;
    await forgetFinishedRun(tx, runUid, version);
    await context.finish(tx);
    return false;
  });
  if (isWaiting) throw new DomainError({ kind: "unavailable", reason: "attempt_in_flight", message: "A judge of an earlier end of the run has not ended.", retryAfterSeconds: 30 });
};

/** Returns how many scorers could not start as they still judge an earlier end. */
async function startAutomatic({ clock }: ScoreRunDeps, tx: Sql, run: ScoredRun): Promise<number> {
  if (run.factoryUid === "") return 0;
  const scorers = await lockAutomaticScorers(tx, run.factoryUid);
  const attempted = await attemptedVersions(tx, run.uid);
  const chosen = scorers.filter((scorer) =>
    whyNotScoreable(run, { uid: scorer.factoryUid, teamUid: scorer.teamUid }) === undefined &&
    isInScope(run, scorer) &&
    isSampled(scorer.uid, run.uid, scorer.samplingRate) &&
    (attempted.get(scorer.uid) ?? -1) < run.version);
  const facts = factsOf(run);
  const started = await startAttempts(tx, chosen.map((scorer) => ({ scorer, run: facts, trigger: "automatic", requester: scorer.creator })), clock.now());
  return started.filter(({ outcome }) => outcome === "in_flight").length;
}
