import type { Sql } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import { sendWork, type WorkHandler } from "@millwright/work";

/** Kind of work that cancels a judge run whose attempt was deleted; its key is the run's uid. */
export const CANCEL_JUDGE_WORK = "cancel-judge-run";

export type CancelJudgeRunDeps = {
  readonly runs: { cancel(teamUid: string, runUid: string, cause: string): Promise<void> };
};
export type JudgeRunRef = { readonly runUid: string; readonly teamUid: string };

/** Has a judge run cancelled after the transaction. */
export const enqueueCancel = (tx: Sql, { runUid, teamUid }: JudgeRunRef): Promise<void> =>
  sendWork(tx, { kind: CANCEL_JUDGE_WORK, key: runUid, payload: { runUid, teamUid }, teamUid });

const ENDED = ["run_already_finished", "run_not_found"];

/** Carries out `enqueueCancel`. A run that has ended needs nothing. */
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
