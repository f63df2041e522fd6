import { readBudgets, type ReadBudgetsDeps } from "../../budgets/usecases/spend-budgets.ts";
import type { Caller } from "@millwright/caller";
import { exhaustedMessage, isExhausted, isNearlyExhausted, type LimitingBudget } from "../../budgets/domain/budget.ts";
import { explainQueue, type QueueFacts, type QueueStatus } from "../domain/queue-reason.ts";
import type { Run } from "../../runs/domain/run.ts";

export type GetQueueStatusDeps = ReadBudgetsDeps & {
  getVisibleRun(caller: Caller, uid: string): Promise<Run>;
  readQueueFacts(runUid: string): Promise<QueueFacts>;
};

/** The queue status with the budgets that are exhausted or have reached a threshold. */
export type QueueStatusWithBudgets = QueueStatus & { readonly budgets: readonly LimitingBudget[] };

/** Returns the position of a run in the queue and what it waits for. Errors: run_not_found. */
export async function getQueueStatus(
  deps: GetQueueStatusDeps,
  caller: Caller,
  runUid: string,
): Promise<QueueStatusWithBudgets> {
  const run = await deps.getVisibleRun(caller, runUid);
  const facts = await deps.readQueueFacts(run.uid);
  const covering = facts.state === "QUEUED" ? await readBudgets(deps, run.uid) : [];
  const exhausted = covering.find(isExhausted);
  const status = explainQueue(exhausted ? { ...facts, exhaustedBudget: exhaustedMessage(exhausted) } : facts);
  return { ...status, budgets: covering.filter(isNearlyExhausted) };
}
