import { DomainError } from "@millwright/errors";
import type { RunEvent } from "../domain/run-events.ts";
import type { LeaseRef, WorkerSession } from "../domain/worker-session.ts";

export type ReadHistoryDeps = {
  findRunOfLease(session: WorkerSession, lease: LeaseRef): Promise<string | undefined>;
  listRunEvents(runUid: string, afterSeq: number, limit: number): Promise<readonly RunEvent[]>;
};

const PAGE = 500;

/**
 * What has happened in an execution's run, oldest first, without what lost attempts wrote: from this a harness goes on.
 *
 * Errors: lease_lost (conflict).
 */
export async function readHistory(
  deps: ReadHistoryDeps,
  session: WorkerSession,
  lease: LeaseRef,
  afterSeq: number,
): Promise<{ events: readonly RunEvent[]; hasMore: boolean }> {
  const runUid = await deps.findRunOfLease(session, lease);
  if (runUid === undefined) {
    throw new DomainError({ kind: "conflict", reason: "lease_lost", message: "This attempt no longer holds the execution; stop it." });
  }
  const found = await deps.listRunEvents(runUid, afterSeq, PAGE + 1);
  const page = found.slice(0, PAGE);
  const hasMore = found.length > PAGE;
  const shown = page.filter(({ isSuperseded }) => !isSuperseded);
  // Never an empty page with more behind it: a reader continues from the last seq it was given.
  if (hasMore && shown.length === 0) return readHistory(deps, session, lease, page.at(-1)?.seq ?? afterSeq);
  return { events: shown, hasMore };
}
