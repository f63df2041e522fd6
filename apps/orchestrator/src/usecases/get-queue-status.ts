import type { Caller } from "@millwright/caller";
import { explainQueue, type QueueFacts, type QueueStatus } from "../domain/queue-reason.ts";
import type { Run } from "../domain/run.ts";

export type GetQueueStatusDeps = {
  getVisibleRun(caller: Caller, uid: string): Promise<Run>;
  readQueueFacts(runUid: string): Promise<QueueFacts>;
};

/** Where a run stands in the queue and what it waits for. Errors: run_not_found. */
export async function getQueueStatus(deps: GetQueueStatusDeps, caller: Caller, runUid: string): Promise<QueueStatus> {
  const run = await deps.getVisibleRun(caller, runUid);
  return explainQueue(await deps.readQueueFacts(run.uid));
}
