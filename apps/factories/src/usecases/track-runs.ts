import type { Clock } from "@millwright/clock";
import { as, type ConversationUid, type FactoryUid, type RunUid, type TeamUid } from "@millwright/ids";
import { changeTask, isStageSince, newTask, type RunVersion, type Task } from "../domain/task.ts";

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

/** Operations on tasks in the transaction that handles the event. */
export type TaskTransaction = {
  hasFactory(uid: FactoryUid): Promise<boolean>;
  /** Inserts a task with its event, unless its conversation has a live task. */
  insert(task: Task): Promise<void>;
  /** Sets the newest top-level run of a team in a conversation on the team's live task, if any. */
  noteCurrentRun(teamUid: TeamUid, conversationUid: ConversationUid, runUid: RunUid): Promise<void>;
  /** Moves the live task whose current run was `from` to the conversation of the run's retry, with the event. */
  moveTo(
    from: RunUid,
    retry: { conversationUid: ConversationUid; runUid: RunUid; teamUid: TeamUid },
    now: Date,
  ): Promise<void>;
  /** Changes the live task whose current run is this run, if any, with the event. */
  updateByCurrentRun(runUid: RunUid, change: (task: Task) => Task): Promise<void>;
};

/**
 * Handles the start of a run. A dispatch creates a task in stage TRIAGE. A top-level run of the team that continues a
 * task's conversation becomes the task's current run; a personal run never does. A retry of a task's current run moves
 * the task to the retry's conversation.
 */
export async function trackRunStart(tx: TaskTransaction, clock: Clock, run: RunStart): Promise<void> {
  if (run.parentRunUid !== undefined || run.teamUid === undefined) return;
  const teamUid = as<TeamUid>(run.teamUid);
  const [conversationUid, runUid] = [as<ConversationUid>(run.conversationUid), as<RunUid>(run.runUid)];
  const factoryUid = run.factoryUid === undefined ? undefined : as<FactoryUid>(run.factoryUid);
  if (run.retryOfRunUid !== undefined)
    return tx.moveTo(as<RunUid>(run.retryOfRunUid), { conversationUid, runUid, teamUid }, clock.now());
  const isDispatch = run.origin === "dispatch" && factoryUid !== undefined;
  if (!isDispatch) return tx.noteCurrentRun(teamUid, conversationUid, runUid);
  if (!(await tx.hasFactory(factoryUid))) return; // the factory was deleted with its tasks
  await tx.insert(
    newTask(
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
    ),
  );
}

/**
 * Handles the end of a run. If a task's current top-level run was cancelled, the task is cancelled, unless its stage
 * was set with knowledge of that cancellation.
 */
export async function trackRunEnd(
  tx: TaskTransaction,
  clock: Clock,
  run: RunVersion & { state: string },
): Promise<void> {
  if (run.state !== "CANCELLED") return;
  await tx.updateByCurrentRun(as<RunUid>(run.runUid), (task) =>
    task.stage === "CANCELLED" || isStageSince(task, run)
      ? task
      : changeTask(task, { stage: "CANCELLED" }, clock.now()),
  );
}
