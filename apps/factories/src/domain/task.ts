import { TASK_STAGES } from "@millwright/definition";
import { DomainError, invalidArgument } from "@millwright/errors";
import {
  newUid,
  type ConversationUid,
  type FactoryUid,
  type RunUid,
  type TaskUid,
  type TeamUid,
} from "@millwright/ids";

/** The stage of a task; any stage may follow any other. */
export type TaskStage = (typeof TASK_STAGES)[number];

/** A tracked piece of work of a factory, bound to one conversation. */
export type Task = {
  uid: TaskUid;
  factoryUid: FactoryUid;
  teamUid: TeamUid;
  conversationUid: ConversationUid;
  /** Snapshot: the conversation's newest run at creation. Never changed. */
  runUid: RunUid;
  /** The newest top-level run of the conversation. */
  currentRunUid: RunUid;
  /** The newest version of a run whose end the stage reflects: a cancellation up to it no longer changes the stage. */
  stageRunVersion: RunVersion | null;
  /** The principal that started the run of `runUid`; null: unknown. */
  startedByUid: string | null;
  title: string;
  description: string | null;
  stage: TaskStage;
  ticketSource: string | null;
  ticketId: string | null;
  version: number;
  createdAt: Date;
  updatedAt: Date;
};

/** A run at one version, as counted by its lifecycle events. */
export type RunVersion = { readonly runUid: string; readonly version: number };

/** Returns whether the stage of a task was set with knowledge of a run at this version. */
export const isStageSince = ({ stageRunVersion }: Task, { runUid, version }: RunVersion): boolean =>
  stageRunVersion?.runUid === runUid && stageRunVersion.version >= version;

/** A requested change; an absent member is unchanged. */
export type TaskChange = { title?: string; description?: string | null; stage?: string };

/** Errors: invalid_stage. */
export function readStage(text: string): TaskStage {
  const stage = TASK_STAGES.find((known) => known === text);
  if (stage) return stage;
  throw invalidArgument("invalid_stage", `stage must be one of ${TASK_STAGES.join(", ")} (got "${text}").`);
}

/**
 * Returns the task with exactly the given members replaced; without any, the same task with the same update time.
 * An empty description clears it. `stageRunVersion`: the current run when the new stage was chosen.
 *
 * Errors: title_required, invalid_stage.
 */
export function changeTask(task: Task, change: TaskChange, now: Date, stageRunVersion = task.stageRunVersion): Task {
  if (Object.values(change).every((value) => value === undefined)) return task;
  return {
    ...task,
    ...(change.title !== undefined && { title: readTitle(change.title) }),
    ...(change.description !== undefined && { description: change.description || null }),
    ...(change.stage !== undefined && { stage: readStage(change.stage), stageRunVersion }),
    version: task.version + 1,
    updatedAt: now,
  };
}

/** The newest run that a team has in a conversation. A hidden one has no data. */
export type ConversationState =
  | { readonly isHidden: true }
  | {
      readonly isHidden: false;
      readonly runUid: string;
      readonly version: number;
      /** Absent: a personal run. */
      readonly teamUid?: string;
      readonly creatorUid: string;
      readonly metadata: Readonly<Record<string, string>>;
    };

/** The input of a new task. */
export type NewTask = Pick<
  Task,
  "factoryUid" | "teamUid" | "conversationUid" | "runUid" | "startedByUid" | "title" | "ticketSource" | "ticketId"
> & {
  stageRunVersion?: RunVersion;
  description?: string | null;
  stage?: TaskStage;
};

/** Returns a new task; an empty description means none. */
export const newTask = ({ description, stage, stageRunVersion, ...given }: NewTask, now: Date): Task => ({
  ...given,
  uid: newUid<TaskUid>(),
  currentRunUid: given.runUid,
  description: description || null,
  stage: stage ?? "TRIAGE",
  stageRunVersion: stageRunVersion ?? null,
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
  new DomainError({
    kind: "conflict",
    reason: "conversation_bound",
    message: "The conversation is bound to another task. Delete that task first.",
  });

/** The filter of a task list. */
export type TaskFilter = {
  /** Any of these; empty: all. */
  stages: TaskStage[];
  /** A literal part of the title, ignoring case; "": all. */
  q: string;
  /** Bounds are strict. */
  createdAfter?: Date;
  createdBefore?: Date;
  updatedAfter?: Date;
  /** Principals that started the task's run; absent: any. */
  starterUids?: readonly string[];
};

/** One page of a task list. */
export type TaskQuery = TaskFilter & {
  factoryUid: FactoryUid;
  sortBy: "created_at" | "updated_at";
  sortOrder: "asc" | "desc";
  /** Excludes rows updated since the first page, because they would be listed twice. */
  notAfter?: Date;
  after?: { at: Date; uid: string };
  limit: number;
};
