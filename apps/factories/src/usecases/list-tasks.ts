import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { invalidArgument } from "@millwright/errors";
import { clampPageSize, type Cursors } from "@millwright/paging";
import { readStage, type Task, type TaskFilter } from "../domain/task.ts";
import type { TaskStore } from "../store/task-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type ListTasksDeps = ScopeDeps & {
  tasks: Pick<TaskStore, "list">;
  /** Returns the uids of a team's users with these addresses. Unknown addresses are ignored. */
  agents: { findTeammates(caller: Caller, teamUid: string, emails: readonly string[]): Promise<string[]> };
  cursors: Cursors;
  clock: Clock;
};

export type ListTasksInput = Omit<TaskFilter, "stages" | "starterUids"> & {
  factoryUid: string;
  stages: readonly string[];
  /** E-mail addresses of the users who started the tasks' runs; empty: any user. */
  createdBy: readonly string[];
  sortBy: string;
  sortOrder: string;
  pageSize: number;
  pageToken: string;
};

/**
 * Lists a factory's live tasks, newest first by default, with ties ordered by uid. Across pages, a task whose sort key
 * does not change appears exactly once, any other task at most once.
 * Errors: factory_not_found · not_authorized · invalid_stage · invalid_sort · invalid_cursor.
 */
export async function listTasks(
  deps: ListTasksDeps,
  caller: Caller,
  input: ListTasksInput,
): Promise<{ tasks: Task[]; nextPageToken: string }> {
  const factory = await findFactory(deps, caller, input.factoryUid, "factory.view");
  const sortBy = oneOf(input.sortBy || "created_at", ["created_at", "updated_at"]);
  const sortOrder = oneOf(input.sortOrder || "desc", ["asc", "desc"]);
  const { q, createdAfter, createdBefore, updatedAfter } = input;
  const stages = [...new Set(input.stages.map(readStage))].sort();
  const createdBy = [...new Set(input.createdBy.map((email) => email.trim().toLowerCase()))].sort();
  const filter: TaskFilter = {
    stages,
    q,
    createdAfter,
    createdBefore,
    updatedAfter,
  };
  const bind = { factory: factory.uid, sortBy, sortOrder, createdBy, ...filter };
  const place = input.pageToken === "" ? undefined : readPlace(deps.cursors.open("tasks", bind, input.pageToken));
  const startedAt = place?.startedAt ?? deps.clock.now();
  const limit = clampPageSize(input.pageSize, { default: 50, max: 100 });
  const starters =
    createdBy.length === 0 ? {} : { starterUids: await deps.agents.findTeammates(caller, factory.teamUid, createdBy) };
  const rows = await deps.tasks.list({
    ...filter,
    ...starters,
    factoryUid: factory.uid,
    sortBy,
    sortOrder,
    limit: limit + 1,
    after: place?.after,
    notAfter: place?.startedAt,
  });
  const tasks = rows.slice(0, limit);
  const last = tasks.at(-1);
  if (rows.length <= limit || !last) return { tasks, nextPageToken: "" };
  const at = sortBy === "created_at" ? last.createdAt : last.updatedAt;
  return { tasks, nextPageToken: deps.cursors.seal("tasks", bind, [startedAt.getTime(), at.getTime(), last.uid]) };
}

const readPlace = ([startedMs, atMs, uid]: unknown[]) => ({
  startedAt: new Date(Number(startedMs)),
  after: { at: new Date(Number(atMs)), uid: String(uid) },
});

function oneOf<const T extends string>(text: string, values: readonly T[]): T {
  const value = values.find((known) => known === text);
  if (value) return value;
  throw invalidArgument("invalid_sort", `The sort must be one of ${values.join(", ")} (got "${text}").`);
}
