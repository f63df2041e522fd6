import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { factories } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import type { Task, TaskChange } from "../domain/task.ts";
import type { CreateTaskInput } from "../usecases/create-task.ts";
import type { ListTasksInput } from "../usecases/list-tasks.ts";
import { checkMask } from "./field-mask.ts";

export const toTaskMessage = (task: Task): MessageInitShape<typeof factories.TaskSchema> => ({
  uid: task.uid,
  factoryUid: task.factoryUid,
  teamUid: task.teamUid,
  starterUid: task.startedByUid ?? "",
  conversationUid: task.conversationUid,
  runUid: task.runUid,
  title: task.title,
  stage: task.stage,
  createdAt: timestampFromDate(task.createdAt),
  updatedAt: timestampFromDate(task.updatedAt),
  description: task.description ?? undefined,
  ticketSource: task.ticketSource ?? undefined,
  ticketId: task.ticketId ?? undefined,
});

export const readNewTask = ({
  factoryUid,
  title,
  conversationUid,
  description,
  stage,
  idempotencyKey,
}: factories.CreateTaskRequest): CreateTaskInput => ({
  factoryUid,
  title,
  conversationUid,
  stage,
  idempotencyKey,
  description,
});

/** Reads exactly the masked members; a masked description that is unset is cleared. Errors: unknown_field. */
export function readTaskChange(task: factories.Task | undefined, paths: readonly string[]): TaskChange {
  const mask = checkMask(paths, ["title", "description", "stage"]);
  return {
    ...(mask.has("title") && { title: task?.title ?? "" }),
    ...(mask.has("description") && { description: task?.description ?? null }),
    ...(mask.has("stage") && { stage: task?.stage ?? "" }),
  };
}

export function readListTasks(request: factories.ListTasksRequest): ListTasksInput {
  const { factoryUid, stages, createdBy, q, sortBy, sortOrder, pageSize, pageToken } = request;
  return {
    factoryUid,
    stages,
    createdBy,
    q,
    sortBy,
    sortOrder,
    pageSize,
    pageToken,
    createdAfter: request.createdAfter && readTime(request.createdAfter),
    createdBefore: request.createdBefore && readTime(request.createdBefore),
    updatedAfter: request.updatedAfter && readTime(request.updatedAfter),
  };
}

/** Errors: invalid_time, for a time outside the supported range. */
function readTime(timestamp: Timestamp): Date {
  const date = timestampDate(timestamp);
  if (date.getUTCFullYear() >= 1 && date.getUTCFullYear() <= 9999) return date;
  throw invalidArgument(
    "invalid_time",
    `A time must be in the years 1 to 9999 (got the year ${date.getUTCFullYear()}).`,
  );
}
