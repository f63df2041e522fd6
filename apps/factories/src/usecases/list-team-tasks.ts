import { requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { notFound } from "@millwright/errors";
import { as, isUuid, type TeamUid } from "@millwright/ids";
import { clampPageSize, type Cursors } from "@millwright/paging";
import { readStage, type Task } from "../domain/task.ts";
import type { TaskStore } from "../store/task-store.ts";

export type ListTeamTasksDeps = { tasks: Pick<TaskStore, "listOfTeam">; cursors: Cursors; clock: Clock };

export type ListTeamTasksInput = { teamUid: string; stage: string; pageSize: number; pageToken: string };

/**
 * Lists the live tasks of one stage of all factories of a team, most recently changed first, with ties ordered by uid.
 * Across pages, a task that does not change appears exactly once, any other task at most once.
 * Errors: team_not_found (also for callers with a run token, who see one factory) · not_authorized · invalid_stage ·
 * invalid_cursor.
 */
export async function listTeamTasks(
  { tasks, cursors, clock }: ListTeamTasksDeps,
  caller: Caller,
  { teamUid, stage: stageText, pageSize, pageToken }: ListTeamTasksInput,
): Promise<{ tasks: Task[]; nextPageToken: string }> {
  if (!isUuid(teamUid) || caller.run) throw notFound("team");
  requireVerb(caller, teamUid, "factory.view", "team");
  const stage = readStage(stageText);
  const bind = { team: teamUid, stage };
  const place = pageToken === "" ? undefined : readPlace(cursors.open("team-tasks", bind, pageToken));
  const startedAt = place?.notAfter ?? clock.now();
  const limit = clampPageSize(pageSize, { default: 50, max: 100 });
  const rows = await tasks.listOfTeam({
    teamUid: as<TeamUid>(teamUid),
    stage,
    limit: limit + 1,
    ...place,
  });
  const listed = rows.slice(0, limit);
  const last = listed.at(-1);
  const next = rows.length > limit && last ? [startedAt.getTime(), last.updatedAt.getTime(), last.uid] : undefined;
  return { tasks: listed, nextPageToken: next ? cursors.seal("team-tasks", bind, next) : "" };
}

const readPlace = ([startedMs, atMs, uid]: unknown[]) => ({
  notAfter: new Date(Number(startedMs)),
  after: { at: new Date(Number(atMs)), uid: String(uid) },
});
