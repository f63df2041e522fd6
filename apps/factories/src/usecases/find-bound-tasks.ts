import type { Item } from "@millwright/code-host-events";
import { as, type FactoryUid } from "@millwright/ids";
import type { BoundTask } from "../domain/bound-task.ts";
import type { Task } from "../domain/task.ts";
import type { TriggerEvent } from "../domain/trigger-event.ts";

export type FindBoundTasksDeps = {
  tasks: {
    /** Live tasks that are not cancelled, newest first: those of the ticket, and those of the conversations. */
    boundTo(
      factoryUid: FactoryUid,
      bound: { ticket: { source: string; ids: readonly string[] }; conversationUids: readonly string[] },
    ): Promise<Task[]>;
  };
  runs: {
    /** Conversations of the team that are about what is at a URL. */
    conversationsByUrl(teamUid: string, url: string): Promise<readonly string[]>;
    /** Where conversations stand, as the team may know it; others are left out. */
    standingsOf(
      teamUid: string,
      conversationUids: readonly string[],
    ): Promise<ReadonlyMap<string, NonNullable<BoundTask["at"]>>>;
  };
};

/**
 * The tasks of a factory that are bound to any of these items, newest first: by their ticket, by the ticket's URL, or because a run of theirs has reported the item
 * as its pull request or as an external reference. Deleted and cancelled tasks are bound to nothing.
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
  const standings =
    found.length > 0
      ? await runs.standingsOf(
          teamUid,
          found.map((task) => task.conversationUid),
        )
      : undefined;
  return found.map((task) => {
    const at = standings?.get(task.conversationUid);
    return { task, ...(at && { at }) };
  });
}
