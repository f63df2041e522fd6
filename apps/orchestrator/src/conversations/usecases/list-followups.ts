import type { Caller } from "@millwright/caller";
import { clampPageSize, type Cursors } from "@millwright/paging";
import type { Followup } from "../../runs/domain/followup.ts";
import type { Run } from "../../runs/domain/run.ts";

export type ListFollowupsDeps = {
  /** Errors: run_not_found. */
  readonly getVisibleRun: (caller: Caller, uid: string) => Promise<Run>;
  /** Returns at most `limit` follow-ups, oldest first. */
  readonly followupsOf: (
    runUid: string,
    afterSeq: number,
    limit: number,
  ) => Promise<{ readonly followups: readonly Followup[]; readonly hasMore: boolean }>;
  readonly cursors: Cursors;
};

/** Returns a page of the follow-ups of a run with their delivery states. Errors: run_not_found · invalid_cursor. */
export async function listFollowups(
  deps: ListFollowupsDeps,
  caller: Caller,
  { runUid, pageSize, pageToken }: { runUid: string; pageSize: number; pageToken: string },
): Promise<{ followups: readonly Followup[]; nextPageToken: string }> {
  const run = await deps.getVisibleRun(caller, runUid);
  const bind = { run: run.uid };
  const [afterSeq] = pageToken === "" ? [0] : deps.cursors.open("followups", bind, pageToken);
  const limit = clampPageSize(pageSize, { default: 50, max: 100 });
  const { followups, hasMore } = await deps.followupsOf(run.uid, Number(afterSeq), limit);
  const last = followups.at(-1);
  return { followups, nextPageToken: hasMore && last ? deps.cursors.seal("followups", bind, [last.seq]) : "" };
}
