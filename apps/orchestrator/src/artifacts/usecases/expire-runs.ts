import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { enqueueBlobDeletion } from "../../storage/store/blob-work.ts";
import type { Transaction } from "../../storage/store/transaction.ts";
import type { expiryStore, Expired } from "../store/expiry-store.ts";

export type ExpireRunsDeps = {
  readonly clock: Clock;
  readonly transaction: Transaction;
  readonly expiries: typeof expiryStore;
  /** For how many days after the end of a conversation's last run their workers' events are retained. 0: forever. */
  readonly runEventDays: number;
  /** The same for plans, files and screenshots. */
  readonly artifactDays: number;
};

const DAY_MS = 24 * 60 * 60 * 1000;

/**
 * Deletes the workers' events, the transcripts and the artifacts of ended conversations whose retention time is over,
 * in bounded transactions. Their files are deleted an hour later, when no link to them is valid any more. Ends early,
 * with the rest not deleted, if `signal` is aborted.
 */
export async function expireRuns(deps: ExpireRunsDeps, signal: AbortSignal): Promise<void> {
  const nowMs = deps.clock.now().getTime();
  const before = (days: number) => new Date(nowMs - days * DAY_MS);
  if (deps.runEventDays > 0)
    await untilNoneIsLeft(deps, signal, (tx) => deps.expiries.dropEvents(tx, before(deps.runEventDays)));
  if (deps.artifactDays > 0)
    await untilNoneIsLeft(deps, signal, (tx) => deps.expiries.dropArtifacts(tx, before(deps.artifactDays)));
}

async function untilNoneIsLeft(
  { transaction, clock }: ExpireRunsDeps,
  signal: AbortSignal,
  drop: (tx: Sql) => Promise<Expired>,
): Promise<void> {
  for (let isDone = false; !isDone;) {
    signal.throwIfAborted();
    isDone = await transaction(async (tx) => {
      const expired = await drop(tx);
      for (const key of expired.blobKeys) await enqueueBlobDeletion(tx, key, clock.now());
      return expired.isLast;
    });
  }
}
