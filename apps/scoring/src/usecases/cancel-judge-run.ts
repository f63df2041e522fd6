import type { Sql } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import { sendWork, type WorkHandler } from "@millwright/work";

/** Kind of work item that cancels a judge run whose attempt was deleted. Its key is the run's uid. */
export const CANCEL_JUDGE_WORK = "cancel-judge-run";

export type CancelJudgeRunDeps = {
  readonly runs: { cancel(teamUid: string, runUid: string, cause: string): Promise<void> };
};
export type JudgeRunRef = { readonly runUid: string; readonly teamUid: string };

/** Enqueues the cancellation of a judge run, which happens after the transaction. */
export const enqueueCancel = (tx: Sql, { runUid, teamUid }: JudgeRunRef): Promise<void> =>
  sendWork(tx, { kind: CANCEL_JUDGE_WORK, key: runUid, payload: { runUid, teamUid }, teamUid });

const ENDED = ["run_already_finished", "run_not_found"];

/** Handles work items of `enqueueCancel`. Terminal and absent runs are ignored. */
export const cancelJudgeRun =
  ({ runs }: CancelJudgeRunDeps): WorkHandler =>
  async (item) => {
    const { runUid, teamUid } = item.payload as JudgeRunRef;
    try {
      await runs.cancel(teamUid, runUid, runUid);
    } catch (error) {
      if (!isDomainError(error) || !ENDED.includes(error.reason)) throw error;
    }
  };
