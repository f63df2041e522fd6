import { isTransient, type Sql } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import type { ReplayedPage, ReplayPage, ReplayPhase, ReplayStore } from "../store/replay-store.ts";
import { mayReportPullRequest, recordDeliveries, type RecordDeliveriesDeps } from "./record-deliveries.ts";

export type ReplayFactsDeps = {
  readonly replays: Pick<ReplayStore, "find" | "advance">;
  readonly runs: {
    /** Lists a page of all runs, oldest first. */
    walk(pageToken: string): Promise<{ readonly runUids: readonly string[]; readonly nextPageToken: string }>;
    /** Reads the facts of runs again. */
    refresh(runUids: readonly string[]): Promise<void>;
  };
  readonly recording: RecordDeliveriesDeps & {
    readonly deliveries: {
      /**
       * Lists a page of all accepted deliveries that are still stored, oldest first. `event`: as its header names it.
       */
      walk(pageToken: string): Promise<{
        readonly deliveries: readonly { readonly uid: string; readonly event: string }[];
        readonly nextPageToken: string;
      }>;
    };
  };
};

export type ReplayContext = { readonly signal: AbortSignal; finish(tx: Sql): Promise<void> };

/**
 * Replays one page of the facts that upstream services still have. Facts are stored as ingestion stores them: a
 * repeated one changes nothing, and the order does not matter. So ingestion continues concurrently, and a page that is
 * replayed twice ends in the same rows.
 */
export async function replayFacts(
  deps: ReplayFactsDeps,
  { rebuildUid, page }: ReplayPage,
  context: ReplayContext,
): Promise<void> {
  const position = await deps.replays.find(rebuildUid, page);
  if (!position) return;
  const replayed = await REPLAY[position.phase](deps, position.pageToken, context.signal);
  await deps.replays.advance(position, replayed, (tx) => context.finish(tx));
}

const REPLAY: Readonly<
  Record<ReplayPhase, (deps: ReplayFactsDeps, pageToken: string, signal: AbortSignal) => Promise<ReplayedPage>>
> = {
  async runs({ runs }, pageToken) {
    const { runUids, nextPageToken } = await runs.walk(pageToken);
    await runs.refresh(runUids);
    return { count: runUids.length, failures: [], nextPageToken };
  },
  async deliveries({ recording }, pageToken, signal) {
    const { deliveries, nextPageToken } = await recording.deliveries.walk(pageToken);
    const reports = deliveries.filter(({ event }) => mayReportPullRequest(event));
    const failures = await recordAgain(
      recording,
      reports.map(({ uid }) => uid),
      signal,
    );
    return { count: reports.length - failures.length, failures, nextPageToken };
  },
};

/**
 * Returns why deliveries cannot be recorded, for those that cannot: the others are recorded nevertheless. Throws
 * failures that may pass.
 */
async function recordAgain(
  deps: RecordDeliveriesDeps,
  uids: readonly string[],
  signal: AbortSignal,
): Promise<string[]> {
  signal.throwIfAborted();
  try {
    await recordDeliveries(deps, uids, async () => {});
    return [];
  } catch (error) {
    if (isTransient(error) || (isDomainError(error) && error.retryable)) throw error;
    if (uids.length === 1) return [`Delivery ${uids[0]}: ${error instanceof Error ? error.message : String(error)}`];
    const half = Math.ceil(uids.length / 2);
    return [
      ...(await recordAgain(deps, uids.slice(0, half), signal)),
      ...(await recordAgain(deps, uids.slice(half), signal)),
    ];
  }
}
