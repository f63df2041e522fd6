import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import { sendWork, type WorkHandler } from "@millwright/work";
import { improvementRun } from "../domain/improvement-run.ts";
import type { JudgeRun } from "../domain/judge-run.ts";
import { decideImprovement, type ImprovementStore } from "../store/improvement-store.ts";

/** Kind of work item that starts a self-improvement run. Its key is the uid of the decision. */
export const IMPROVE_WORK = "improve-agent";

export type DecideImprovementsDeps = {
  readonly database: Database;
  readonly clock: Clock;
  readonly improvements: Pick<ImprovementStore, "due">;
};

export type ImproveAgentDeps = {
  readonly log: Logger;
  readonly improvements: Pick<ImprovementStore, "find" | "setRun" | "reopen">;
  readonly runs: {
    createJudgeRun(
      behalf: { teamUid: string; requester: { type: string; uid: string } },
      run: JudgeRun,
    ): Promise<string>;
  };
};

/**
 * Decides for which groups of failures a run is started, at most `runs_per_week` in seven days per scorer. The deciding
 * transaction also marks the failures as reviewed. Returns the number of runs.
 */
export async function decideImprovements({ database, clock, improvements }: DecideImprovementsDeps): Promise<number> {
  let decided = 0;
  for (const group of await improvements.due(clock.now())) {
    decided += await database.transaction(async (tx) => {
      const improvement = await decideImprovement(tx, group, clock.now());
      if (!improvement) return 0;
      await sendWork(tx, {
        kind: IMPROVE_WORK,
        key: improvement.uid,
        payload: { improvementUid: improvement.uid },
        teamUid: improvement.teamUid,
      });
      return 1;
    });
  }
  return decided;
}

/**
 * Returns a handler that starts a decided run. It may execute twice, because the decision is the cause of the run. If
 * the run is rejected, its failures are left for the next run.
 */
export const improveAgent =
  ({ improvements, runs, log }: ImproveAgentDeps): WorkHandler =>
  async (item) => {
    const { improvementUid } = item.payload as { improvementUid: string };
    const improvement = await improvements.find(improvementUid);
    if (!improvement || improvement.runUid !== null || improvement.failures.length === 0) return;
    try {
      await improvements.setRun(improvementUid, await runs.createJudgeRun(improvement, improvementRun(improvement)));
    } catch (error) {
      if (!isDomainError(error) || error.retryable) throw error;
      log.warn({ error, teamUid: improvement.teamUid, reason: error.reason }, "a self-improvement run was refused");
      await improvements.reopen(improvementUid);
    }
  };
