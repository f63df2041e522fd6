import type { Item } from "@millwright/code-host-events";
import { as, type FactoryUid } from "@millwright/ids";
import type { BoundTask } from "../domain/bound-task.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";
import type { TaskStore } from "../store/task-store.ts";

export type FindBoundTasksDeps = {
  tasks: Pick<TaskStore, "boundTo">;
  runs: {
    /** Lists the team's conversations that refer to a URL. */
    conversationsByUrl(teamUid: string, url: string): Promise<readonly string[]>;
    /** Returns the newest runs of the conversations that are visible to the team. */
    currentRunsOf(
      teamUid: string,
      conversationUids: readonly string[],
    ): Promise<ReadonlyMap<string, NonNullable<BoundTask["at"]>>>;
  };
};

/**
 * Lists the tasks of a factory that are bound to any of these items, newest first: by their ticket, by the ticket's
 * URL, or because one of their runs reported the item as its pull request or external reference. Deleted and cancelled
 * tasks are excluded.
 */
export async function findBoundTasks(
  { tasks, runs }: FindBoundTasksDeps,
  { factoryUid, teamUid, provider }: TriggerEvent,
  items: readonly Item[],
): Promise<BoundTask[]> {
  const conversationUids = (await Promise.all(items.map(({ url }) => runs.conversationsByUrl(teamUid, url)))).flat();
  const found = await tasks.boundTo(as<FactoryUid>(factoryUid), {
    ticket: { source: provider, ids: items.flatMap(({ id, url }) => [id, url]) },
    conversationUids,
  });
  const currentRuns =
    found.length > 0
      ? await runs.currentRunsOf(
          teamUid,
          found.map((task) => task.conversationUid),
        )
      : undefined;
  return found.map((task) => {
    const at = currentRuns?.get(task.conversationUid);
    return { task, at };
  });
}
