import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { notFound } from "@millwright/errors";
import type { Attempt, Verdict } from "../domain/attempt.ts";
import type { Scorer } from "../domain/scorer.ts";
import { failed, scoredAs } from "../domain/verdict.ts";
import type { JudgedAttempt } from "../store/attempt-rows.ts";
import { lockAttempt, markJudging, settleAttempt, type AttemptStore } from "../store/attempt-store.ts";
import type { ScorerReader } from "../store/scored-run-store.ts";

export type ReportScoresDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly attempts: Pick<AttemptStore, "findByJudgeRun">;
  /** Returns the attempt of a judge run, from the run's metadata. Errors: run_not_found. */
  readonly runs: { attemptOf(caller: Caller, runUid: string): Promise<string | undefined> };
  readonly scorerReader: Pick<ScorerReader, "find">;
};

export type ReportedVerdict = {
  /** Uid or legacy id of the scorer. */
  readonly scorerId: string;
  readonly classification?: string | undefined;
  readonly reason?: string | undefined;
  readonly failed: boolean;
};

export type ReportOutcome = {
  readonly scorerId: string;
  readonly status: "accepted" | "rejected";
  readonly error: string;
};

const UNDECIDED = "judge_undecided";

/**
 * Records the verdicts of a judge run, each independently. Only the run itself may report, only for the scorer that it
 * judges for, and only labels that were captured when its attempt started, regardless of what the run has read. A
 * repeated report is accepted and has no effect.
 *
 * Errors: run_not_found (absent, or the caller is not the run).
 */
export async function reportScores(
  deps: ReportScoresDeps,
  caller: Caller,
  runUid: string,
  verdicts: readonly ReportedVerdict[],
): Promise<ReportOutcome[]> {
  if (caller.run === undefined || caller.run.runUid !== runUid) throw notFound("run");
  const attempt = (await deps.attempts.findByJudgeRun(runUid)) ?? (await recordJudgeRun(deps, caller, runUid));
  const scorer = attempt && (await deps.scorerReader.find(attempt.scorerUid));
  if (!attempt || !scorer) throw notFound("run");
  const outcomes: ReportOutcome[] = [];
  for (const verdict of verdicts) {
    const error = await record(deps, attempt, scorer, verdict);
    outcomes.push({
      scorerId: verdict.scorerId,
      status: error === undefined ? "accepted" : "rejected",
      error: error ?? "",
    });
  }
  return outcomes;
}

/**
 * Records the judge run of an attempt. Needed because a judge run can report before its creator has recorded it, or
 * after its creator died.
 */
async function recordJudgeRun(
  { database, runs, attempts }: ReportScoresDeps,
  caller: Caller,
  runUid: string,
): Promise<Attempt | undefined> {
  const attemptUid = await runs.attemptOf(caller, runUid);
  if (attemptUid === undefined) return undefined;
  await database.transaction((tx) => markJudging(tx, attemptUid, runUid));
  return attempts.findByJudgeRun(runUid);
}

/** Records a verdict. Returns the reason if it is rejected. */
async function record(
  deps: ReportScoresDeps,
  { uid }: Attempt,
  scorer: Scorer,
  reported: ReportedVerdict,
): Promise<string | undefined> {
  const isOwn = reported.scorerId.toLowerCase() === scorer.uid || reported.scorerId === String(scorer.id);
  if (!isOwn) return `The run does not judge for scorer ${JSON.stringify(reported.scorerId.slice(0, 100))}.`;
  return deps.database.transaction(async (tx) => {
    const attempt = await lockAttempt(tx, uid);
    if (!attempt) return "The scorer was deleted.";
    const verdict = read(attempt, reported);
    if (typeof verdict === "string") return verdict;
    if (attempt.state === "scored" || attempt.state === "failed")
      return isSame(attempt, verdict) ? undefined : "The attempt has another verdict already.";
    await settleAttempt(tx, attempt, verdict, deps.clock.now());
    return undefined;
  });
}

function read(attempt: Attempt, { classification, reason, failed: isUndecided }: ReportedVerdict): Verdict | string {
  if (attempt.config.rule) return "A rule decides this attempt, not a report.";
  if (isUndecided && classification !== undefined) return "A failed verdict has no classification.";
  if (isUndecided) return failed(UNDECIDED, reason ?? "The judge could not decide.");
  const allowed = attempt.config.labels.map(({ value }) => JSON.stringify(value)).join(", ");
  if (classification === undefined) return `classification is required; it must be one of ${allowed}.`;
  return (
    scoredAs(attempt, classification, reason) ??
    `classification must be one of ${allowed} (got ${JSON.stringify(classification.slice(0, 100))}).`
  );
}

const isSame = (attempt: JudgedAttempt, verdict: Verdict): boolean =>
  verdict.kind === "scored"
    ? attempt.classification === verdict.label.value && attempt.reason === (verdict.reason ?? null)
    : attempt.failureCode === verdict.code && attempt.failureMessage === verdict.message;
