import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { as, type ConversationUid, type FactoryUid, type RunUid, type TeamUid } from "@millwright/ids";
import { changeTask, isStageSince, newTask, type RunVersion } from "../domain/task.ts";
import type { Origin } from "../events/origin.ts";
import { taskCreated, taskUpdated } from "../events/task-events.ts";
import {
  insertTaskIfFree,
  lockFactoryForShare,
  moveTask,
  noteCurrentRun,
  updateTaskOfRun,
} from "../store/task-store.ts";

/** A started run. */
export type RunStart = {
  runUid: string;
  conversationUid: string;
  startedByUid: string;
  parentRunUid?: string;
  retryOfRunUid?: string;
  origin?: string;
  factoryUid?: string;
  teamUid?: string;
  title: string;
  ticketSource?: string;
  ticketId?: string;
};

/**
 * Handles the start of a run. A dispatch creates a task in stage TRIAGE. A top-level run of the team that continues a
 * task's conversation becomes the task's current run; a personal run never does. A retry of a task's current run moves
 * the task to the retry's conversation.
 */
export async function trackRunStart(tx: Sql, origin: Origin, clock: Clock, run: RunStart): Promise<void> {
  if (run.parentRunUid !== undefined || run.teamUid === undefined) return;
  const teamUid = as<TeamUid>(run.teamUid);
  const [conversationUid, runUid] = [as<ConversationUid>(run.conversationUid), as<RunUid>(run.runUid)];
  const factoryUid = run.factoryUid === undefined ? undefined : as<FactoryUid>(run.factoryUid);
  if (run.retryOfRunUid !== undefined)
    return moveTask(tx, as<RunUid>(run.retryOfRunUid), { conversationUid, runUid, teamUid }, clock.now(), (task) =>
      taskUpdated(task, origin, ["conversation_id"]),
    );
  const isDispatch = run.origin === "dispatch" && factoryUid !== undefined;
  if (!isDispatch) return noteCurrentRun(tx, teamUid, conversationUid, runUid);
  if (!(await lockFactoryForShare(tx, factoryUid))) return; // the factory was deleted with its tasks
  const task = newTask(
    {
      factoryUid,
      teamUid,
      conversationUid,
      runUid,
      startedByUid: run.startedByUid,
      title: run.title.trim() || "Untitled",
      ticketSource: run.ticketSource ?? null,
      ticketId: run.ticketId ?? null,
    },
    clock.now(),
  );
  await insertTaskIfFree(tx, task, taskCreated(task, origin));
}

/**
 * Handles the end of a run. If a task's current top-level run was cancelled, the task is cancelled, unless its stage
 * was set with knowledge of that cancellation.
 */
export async function trackRunEnd(
  tx: Sql,
  origin: Origin,
  clock: Clock,
  run: RunVersion & { state: string },
): Promise<void> {
  if (run.state !== "CANCELLED") return;
  await updateTaskOfRun(
    tx,
    as<RunUid>(run.runUid),
    (task) =>
      task.stage === "CANCELLED" || isStageSince(task, run)
        ? task
        : changeTask(task, { stage: "CANCELLED" }, clock.now()),
    (task, before) => taskUpdated(task, origin, ["stage"], { from: before.stage, byRootRun: before.currentRunUid }),
  );
}
