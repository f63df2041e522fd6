import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import type { WorkHandler } from "@millwright/work";
import type { Attempt, Verdict } from "../domain/attempt.ts";
import type { RunEvidence } from "../domain/judge-evidence.ts";
import { failed, ruleVerdict } from "../domain/verdict.ts";
import { readWorkspaceResults } from "../domain/workspace-checks.ts";
import { settleAttempt, storeJudgeUsage, type AttemptStore } from "../store/attempt-store.ts";

/** Kind of work item that handles the end of a judge run. Its key is the run with its version. */
export const JUDGE_ENDED_WORK = "judge-ended";

type EndedRun = {
  readonly state: string;
  readonly errorCode: string;
  readonly costMicros: number;
  readonly runTimeMs: number;
  readonly usage: unknown;
};

export type EndJudgeRunDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly attempts: Pick<AttemptStore, "findByJudgeRun">;
  readonly runs: {
    describe(runUids: readonly string[]): Promise<EndedRun[]>;
    evidence(runUid: string): Promise<RunEvidence & { readonly version: number }>;
  };
};

/**
 * Returns a handler that stores the usage of a judge run, and settles its attempt if no report did: with the verdict of
 * the rule whose commands the run executed, otherwise as a failure.
 */
export const endJudgeRun =
  (deps: EndJudgeRunDeps): WorkHandler =>
  async (item, context) => {
    const { runUid } = item.payload as { runUid: string };
    const attempt = await deps.attempts.findByJudgeRun(runUid);
    const [run] = await deps.runs.describe([runUid]);
    if (!attempt || !run) return;
    const verdict = attempt.state === "judging" ? await verdictOf(deps, attempt, run, runUid) : undefined;
    await deps.database.transaction(async (tx) => {
      if (verdict) await settleAttempt(tx, attempt, verdict, deps.clock.now());
      await storeJudgeUsage(tx, attempt.uid, { costMicros: run.costMicros, timeMs: run.runTimeMs, usage: run.usage });
      await context.finish(tx);
    });
  };

async function verdictOf(
  { runs }: EndJudgeRunDeps,
  attempt: Attempt,
  { state, errorCode }: EndedRun,
  runUid: string,
): Promise<Verdict> {
  const { rule } = attempt.config;
  const cause = errorCode === "" ? state : `${state}: ${errorCode}`;
  if (!rule) return failed("judge_ended_without_verdict", `The judge run ended without a verdict (${cause}).`);
  if (state !== "SUCCEEDED")
    return failed(errorCode || "judge_failed", `The run that executes the rule's commands failed (${cause}).`);
  try {
    const [evidence, { conversationJson }] = await Promise.all([runs.evidence(attempt.runUid), runs.evidence(runUid)]);
    if (evidence.version !== attempt.runVersion)
      return failed("run_continued", "The run was continued before it was judged.");
    return ruleVerdict(attempt, rule, {
      ...evidence,
      conversation: evidence.conversationJson,
      workspace: readWorkspaceResults(rule, conversationJson),
    });
  } catch (error) {
    if (isDomainError(error) && !error.retryable) return failed(error.reason, error.message);
    throw error;
  }
}
