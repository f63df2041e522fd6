import { NIL_UUID } from "@millwright/ids";
import { clampPageSize, type Cursors } from "@millwright/paging";

export type WalkRunsDeps = {
  /** Returns the uids of runs that teams own, after a uid, oldest first. */
  readonly walkRuns: (afterUid: string, limit: number) => Promise<readonly string[]>;
  readonly cursors: Cursors;
};

export type RunUidPage = { readonly runUids: readonly string[]; readonly nextPageToken: string };

const LIST = "facts.runs";
const PAGE_SIZE = { default: 1_000, max: 5_000 } as const;

/** Returns a page of the uids of all runs that teams own, oldest first. Errors: invalid_cursor (invalid_argument). */
export async function walkRuns(
  { walkRuns: walk, cursors }: WalkRunsDeps,
  pageSize: number,
  pageToken: string,
): Promise<RunUidPage> {
  const limit = clampPageSize(pageSize, PAGE_SIZE);
  const [after] = pageToken === "" ? [NIL_UUID] : (cursors.open(LIST, {}, pageToken) as [string]);
  const found = await walk(after, limit + 1);
  const runUids = found.slice(0, limit);
  return { runUids, nextPageToken: found.length > limit ? cursors.seal(LIST, {}, [runUids.at(-1)]) : "" };
}
