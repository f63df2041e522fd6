import { TASK_STAGES } from "@millwright/definition";
import { DomainError, invalidArgument } from "@millwright/errors";
import { newUid, type ConversationUid, type FactoryUid, type RunUid, type TaskUid, type TeamUid } from "@millwright/ids";

/** Where a task is; any stage may follow any other (API spec §3). */
export type TaskStage = (typeof TASK_STAGES)[number];

/** A tracked piece of work of a factory, bound to one conversation. Source: API spec §2 "Factory task". */
export type Task = {
  uid: TaskUid;
  factoryUid: FactoryUid;
  teamUid: TeamUid;
  conversationUid: ConversationUid;
  /** Snapshot: the conversation's newest run at creation. Never changed. */
  runUid: RunUid;
  /** The newest top-level run of the conversation. */
  currentRunUid: RunUid;
  /** The principal that started the run of `runUid`; null: not known. */
  starterUid: string | null;
  title: string;
  description: string | null;
  stage: TaskStage;
  ticketSource: string | null;
  ticketId: string | null;
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** What a client may change; an absent member stays. */
export type TaskChange = { title?: string; description?: string | null; stage?: string };

/** Errors: invalid_stage. */
export function readStage(text: string): TaskStage {
  const stage = TASK_STAGES.find((known) => known === text);
  if (stage) return stage;
  throw invalidArgument("invalid_stage", `stage is one of ${TASK_STAGES.join(", ")}.`);
}

/**
 * The task with exactly the given members replaced; without any, the same task, unmoved in time.
 * An empty description clears it.
 *
 * Errors: title_required, invalid_stage.
 */
export function changeTask(task: Task, change: TaskChange, now: Date): Task {
  if (Object.values(change).every((value) => value === undefined)) return task;
  return {
    ...task,
    ...(change.title !== undefined && { title: readTitle(change.title) }),
    ...(change.description !== undefined && { description: change.description || null }),
    ...(change.stage !== undefined && { stage: readStage(change.stage) }),
    version: task.version + 1,
    updatedAt: now,
  };
}

/** Where a conversation stands: its newest run. Of a hidden one nothing is known. */
export type Standing =
  | { readonly isHidden: true }
  | {
      readonly isHidden: false;
      readonly runUid: string;
      /** Absent: somebody's own run. */
      readonly teamUid?: string;
      readonly creatorUid: string;
      readonly metadata: Readonly<Record<string, string>>;
    };

/** What a task is made of. */
export type NewTask = Pick<Task, "factoryUid" | "teamUid" | "conversationUid" | "runUid" | "starterUid" | "title" | "ticketSource" | "ticketId"> & {
  description?: string | null;
  stage?: TaskStage;
};

/** A new task; an empty description is none. */
export const newTask = ({ description, stage, ...given }: NewTask, now: Date): Task => ({
  ...given,
  uid: newUid<TaskUid>(),
  currentRunUid: given.runUid,
  description: description || null,
  stage: stage ?? "TRIAGE",
  version: 1,
  createdAt: now,
  updatedAt: now,
});

/** Errors: title_required. */
export function readTitle(title: string): string {
  if (title.trim() === "") throw invalidArgument("title_required", "title must not be empty.");
  return title;
}

export const conversationBound = (): DomainError =>
  new DomainError({ kind: "conflict", reason: "conversation_bound", message: "The conversation is bound to another live task." });

/** Which tasks of a factory a list shows. */
export type TaskFilter = {
  /** Any of these; empty: all. */
  stages: TaskStage[];
  /** A literal part of the title, whatever the case; "": all. */
  q: string;
  /** Bounds are strict. */
  createdAfter?: Date;
  createdBefore?: Date;
  updatedAfter?: Date;
  /** Who started the task's run: any of these; absent: anybody. */
  starterUids?: readonly string[];
};

/** One page of such a list. */
export type TaskQuery = TaskFilter & {
  factoryUid: FactoryUid;
  sortBy: "created_at" | "updated_at";
  sortOrder: "asc" | "desc";
  /** Rows that moved since the first page of a walk are left out: they would be seen twice. */
  notAfter?: Date;
  after?: { at: Date; uid: string };
  limit: number;
};
