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
  /** The newest version of a run whose end the stage already takes into account: a cancellation up to there no longer changes it. */
  stageBasis: RunVersion | null;
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

/** A run at one of its versions, as its lifecycle events count them. */
export type RunVersion = { readonly runUid: string; readonly version: number };

/** Whether the stage of a task was set with knowledge of a run at this version. */
export const isStageSince = ({ stageBasis }: Task, { runUid, version }: RunVersion): boolean =>
  stageBasis?.runUid === runUid && stageBasis.version >= version;

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
 * An empty description clears it. `stageBasis`: the current run as it was when the new stage was chosen.
 *
 * Errors: title_required, invalid_stage.
 */
export function changeTask(task: Task, change: TaskChange, now: Date, stageBasis = task.stageBasis): Task {
  if (Object.values(change).every((value) => value === undefined)) return task;
  return {
    ...task,
    ...(change.title !== undefined && { title: readTitle(change.title) }),
    ...(change.description !== undefined && { description: change.description || null }),
    ...(change.stage !== undefined && { stage: readStage(change.stage), stageBasis }),
    version: task.version + 1,
    updatedAt: now,
  };
}

/** The newest run that a team has in a conversation. Of a hidden one nothing is known. */
export type Standing =
  | { readonly isHidden: true }
  | {
      readonly isHidden: false;
      readonly runUid: string;
      readonly version: number;
      /** Absent: somebody's own run. */
      readonly teamUid?: string;
      readonly creatorUid: string;
      readonly metadata: Readonly<Record<string, string>>;
    };

/** What a task is made of. */
export type NewTask = Pick<
  Task,
  "factoryUid" | "teamUid" | "conversationUid" | "runUid" | "starterUid" | "title" | "ticketSource" | "ticketId"
> & {
  stageBasis?: RunVersion;
  description?: string | null;
  stage?: TaskStage;
};

/** A new task; an empty description is none. */
export const newTask = ({ description, stage, stageBasis, ...given }: NewTask, now: Date): Task => ({
  ...given,
  uid: newUid<TaskUid>(),
  currentRunUid: given.runUid,
  description: description || null,
  stage: stage ?? "TRIAGE",
  stageBasis: stageBasis ?? null,
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
    message: "The conversation is bound to another live task.",
  });

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
