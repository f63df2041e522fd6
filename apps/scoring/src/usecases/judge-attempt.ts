import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { isDomainError, notFound } from "@millwright/errors";
import type { JsonObject } from "@millwright/json";
import type { WorkContext, WorkHandler } from "@millwright/work";
import type { Attempt, Verdict } from "../domain/attempt.ts";
import { needsTexts, needsWorkspace } from "../domain/evaluate-rule.ts";
import type { RunEvidence } from "../domain/judge-evidence.ts";
import { modelJudgeRun, workspaceJudgeRun, type JudgeRun } from "../domain/judge-run.ts";
import type { Rule } from "../domain/rule.ts";
import { failed, ruleVerdict } from "../domain/verdict.ts";
import { lockAttempt, markJudging, settleAttempt, type AttemptStore } from "../store/attempt-store.ts";
import type { ScorerReader } from "../store/scored-run-store.ts";
import { enqueueCancel } from "./cancel-judge-run.ts";

type Behalf = { readonly teamUid: string; readonly requester: { readonly type: string; readonly uid: string } };
type Figures = Omit<RunEvidence, "prompt" | "finalMessage" | "conversationJson" | "diff" | "artifacts"> & {
  readonly version: number;
  readonly hasWorkspace: boolean;
};
export type Evidence = RunEvidence & Figures;

export type JudgeAttemptDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly attempts: Pick<AttemptStore, "find">;
  readonly scorerReader: Pick<ScorerReader, "find">;
  /** Returns the factory's defaults for judge runs. Errors: factory_not_found. */
  readonly scorerDefaults: (behalf: Behalf, factoryUid: string) => Promise<JsonObject>;
  readonly runs: {
    describe(runUids: readonly string[]): Promise<Figures[]>;
    evidence(runUid: string): Promise<Evidence>;
    createJudgeRun(behalf: Behalf, run: JudgeRun): Promise<string>;
  };
};

/** Maximum number of tries of the queue. The failure of the last try is the failure of the attempt. */
const TRIES_MAX = 8;

/**
 * Returns a handler that judges a pending attempt. A rule that needs no workspace is evaluated immediately; otherwise a
 * run is created, whose report or end settles the attempt. The handler may execute twice: the attempt is the cause of
 * its judge run, and is settled only once. A permanent error is a failure of the attempt.
 */
export const judgeAttempt =
  (deps: JudgeAttemptDeps): WorkHandler =>
  async (item, context) => {
    const attempt = await deps.attempts.find((item.payload as { attemptUid: string }).attemptUid);
    if (attempt?.state !== "pending") return;
    try {
      await judge(deps, attempt, context);
    } catch (error) {
      const isFinal = isDomainError(error) && !error.retryable;
      if (!isFinal && item.attempts < TRIES_MAX) throw error;
      const verdict = isDomainError(error)
        ? failed(error.reason, error.message)
        : failed("judge_unavailable", "The judge could not be started.");
      await settle(deps, attempt, verdict, context);
    }
  };

async function judge(deps: JudgeAttemptDeps, attempt: Attempt, context: WorkContext): Promise<void> {
  const { rule } = attempt.config;
  const evidence = await evidenceFor(deps, attempt.runUid, rule);
  if (evidence.version !== attempt.runVersion)
    return settle(deps, attempt, failed("run_continued", "The run was continued before it was judged."), context);
  if (rule && !needsWorkspace(rule)) {
    return settle(
      deps,
      attempt,
      ruleVerdict(attempt, rule, { ...evidence, conversation: evidence.conversationJson, workspace: new Map() }),
      context,
    );
  }
  if (rule && !evidence.hasWorkspace) {
    return settle(
      deps,
      attempt,
      failed("workspace_missing", "The run left no workspace on which the rule could be executed."),
      context,
    );
  }
  const runUid = await deps.runs.createJudgeRun(attempt, await judgeRunOf(deps, attempt, rule, evidence));
  await recordJudgeRun(deps, attempt, runUid);
}

async function judgeRunOf(
  deps: JudgeAttemptDeps,
  attempt: Attempt,
  rule: Rule | null,
  evidence: Evidence,
): Promise<JudgeRun> {
  const [scorer, defaults] = await Promise.all([
    deps.scorerReader.find(attempt.scorerUid),
    deps.scorerDefaults(attempt, attempt.factoryUid),
  ]);
  const name = scorer?.name ?? "";
  return rule ? workspaceJudgeRun(attempt, name, rule, defaults) : modelJudgeRun(attempt, name, evidence, defaults);
}

/** Records the judge run. Cancels it if the attempt was deleted or ended concurrently. */
const recordJudgeRun = ({ database }: JudgeAttemptDeps, { uid, teamUid }: Attempt, runUid: string): Promise<void> =>
  database.transaction(async (tx) => {
    if (await markJudging(tx, uid, runUid)) return;
    const attempt = await lockAttempt(tx, uid);
    if (attempt?.judgeRunUid !== runUid) await enqueueCancel(tx, { runUid, teamUid });
  });

const settle = (
  { database, clock }: JudgeAttemptDeps,
  attempt: Attempt,
  verdict: Verdict,
  context: WorkContext,
): Promise<void> =>
  database.transaction(async (tx) => {
    await settleAttempt(tx, attempt, verdict, clock.now());
    await context.finish(tx);
  });

/**
 * Returns the evidence for a rule or a model judge, without the texts of the run if no check reads them, because
 * conversations are long. Errors: run_not_found.
 */
async function evidenceFor({ runs }: JudgeAttemptDeps, runUid: string, rule: Rule | null): Promise<Evidence> {
  if (!rule || needsTexts(rule)) return runs.evidence(runUid);
  const [run] = await runs.describe([runUid]);
  if (!run) throw notFound("run");
  return { ...run, prompt: "", finalMessage: "", conversationJson: "", diff: "", artifacts: [] };
}
