import type { Clock } from "@millwright/clock";
import { as, type ConversationUid, type FactoryUid, type RunUid, type TeamUid } from "@millwright/ids";
import { changeTask, newTask, type Task } from "../domain/task.ts";

/** What a run says of itself when it begins. */
export type RunStart = {
  runUid: string;
  conversationUid: string;
  starterUid: string;
  parentRunUid?: string;
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
  /** Notes the newest top-level run of a conversation at its live task, if it has one. */
  noteCurrentRun(conversationUid: ConversationUid, runUid: RunUid): Promise<void>;
  /** Changes the live task whose current run this is, if there is one, and saves the fact. */
  updateByCurrentRun(runUid: RunUid, change: (task: Task) => Task): Promise<void>;
};

/**
 * Follows the start of a run: a dispatch makes a task (stage TRIAGE), and a top-level run that continues a task's conversation
 * becomes its current run. Source: spec/decisions "task by itself", fields-factory §2.2.
 */
export async function followRunStart(tx: TaskTransaction, clock: Clock, run: RunStart): Promise<void> {
  if (run.parentRunUid !== undefined) return;
  const [conversationUid, runUid] = [as<ConversationUid>(run.conversationUid), as<RunUid>(run.runUid)];
  const factoryUid = run.factoryUid === undefined ? undefined : as<FactoryUid>(run.factoryUid);
  const isDispatch = run.origin === "dispatch" && factoryUid !== undefined && run.teamUid !== undefined;
  if (!isDispatch) return tx.noteCurrentRun(conversationUid, runUid);
  if (!(await tx.hasFactory(factoryUid))) return; // deleted since: its tasks are gone
  await tx.insert(
    newTask(
      {
        factoryUid,
        teamUid: as<TeamUid>(run.teamUid ?? ""),
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

/** Follows the end of a run: when a task's current top-level run was cancelled, by whatever route, so is the task. */
export async function followRunEnd(tx: TaskTransaction, clock: Clock, run: { runUid: string; state: string }): Promise<void> {
  if (run.state !== "CANCELLED") return;
  await tx.updateByCurrentRun(as<RunUid>(run.runUid), (task) =>
    task.stage === "CANCELLED" ? task : changeTask(task, { stage: "CANCELLED" }, clock.now()),
  );
}
