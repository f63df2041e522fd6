import type { Clock } from "@millwright/clock";
import { as, type ConversationUid, type FactoryUid, type RunUid, type TeamUid } from "@millwright/ids";
import { changeTask, isStageSince, newTask, type RunVersion, type Task } from "../domain/task.ts";

/** What a run says of itself when it begins. */
export type RunStart = {
  runUid: string;
  conversationUid: string;
  starterUid: string;
  parentRunUid?: string;
  retryOfRunUid?: string;
  origin?: string;
  factoryUid?: string;
  teamUid?: string;
  title: string;
  ticketSource?: string;
  ticketId?: string;
};

/** The work on tasks of one transaction, which also applies the event that asks for it. */
export type TaskTransaction = {
  hasFactory(uid: FactoryUid): Promise<boolean>;
  /** Saves a new task with its fact, unless its conversation has a live task. */
  insert(task: Task): Promise<void>;
  /** Sets the newest top-level run of a team in a conversation at the team's live task, if there is one. */
  noteCurrentRun(teamUid: TeamUid, conversationUid: ConversationUid, runUid: RunUid): Promise<void>;
  /** Binds the live task of a team whose current run was `from` to the conversation of the run that is its retry, with the fact. */
  moveTo(
    from: RunUid,
    retry: { conversationUid: ConversationUid; runUid: RunUid; teamUid: TeamUid },
    now: Date,
  ): Promise<void>;
  /** Changes the live task whose current run this is, if there is one, and saves the fact. */
  updateByCurrentRun(runUid: RunUid, change: (task: Task) => Task): Promise<void>;
};

/**
 * Follows the start of a run: a dispatch makes a task (stage TRIAGE), and a top-level run of the team that continues a task's conversation
 * becomes its current run. A personal run never does. A retry of a task's current
 * run takes the task to its own conversation. Source: spec/decisions "task by itself", fields-factory §2.2.
 */
export async function followRunStart(tx: TaskTransaction, clock: Clock, run: RunStart): Promise<void> {
  if (run.parentRunUid !== undefined || run.teamUid === undefined) return;
  const teamUid = as<TeamUid>(run.teamUid);
  const [conversationUid, runUid] = [as<ConversationUid>(run.conversationUid), as<RunUid>(run.runUid)];
  const factoryUid = run.factoryUid === undefined ? undefined : as<FactoryUid>(run.factoryUid);
  if (run.retryOfRunUid !== undefined)
    return tx.moveTo(as<RunUid>(run.retryOfRunUid), { conversationUid, runUid, teamUid }, clock.now());
  const isDispatch = run.origin === "dispatch" && factoryUid !== undefined;
  if (!isDispatch) return tx.noteCurrentRun(teamUid, conversationUid, runUid);
  if (!(await tx.hasFactory(factoryUid))) return; // deleted since: its tasks are gone
  await tx.insert(
    newTask(
      {
        factoryUid,
        teamUid,
        conversationUid,
        runUid,
        starterUid: run.starterUid,
        title: run.title.trim() || "Untitled",
        ticketSource: run.ticketSource ?? null,
        ticketId: run.ticketId ?? null,
      },
      clock.now(),
    ),
  );
}

/**
 * Follows the end of a run: when a task's current top-level run was cancelled, by whatever route, so is the task, unless its stage
 * was set with knowledge of that cancellation.
 */
export async function followRunEnd(
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
