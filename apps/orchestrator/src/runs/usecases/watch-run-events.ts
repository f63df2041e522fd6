import { topics, type Wakeups } from "../../storage/wakeups.ts";
import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { RunEvent } from "../domain/run-events.ts";
import type { Run } from "../domain/run.ts";
import type { ListRunEvents } from "./read-all-events.ts";

export type WatchRunEventsDeps = {
  /** Errors: run_not_found. */
  readonly getVisibleRun: (caller: Caller, uid: string) => Promise<Run>;
  /** Returns whether the run and all its executions have ended. */
  readonly isSettled: (runUid: string) => Promise<boolean>;
  readonly listRunEvents: ListRunEvents;
  readonly wakeups: Pick<Wakeups, "wait">;
  readonly clock: Clock;
  readonly timings: { readonly keepAliveMs: number; readonly pollMs: number };
};

/** Small, because events may be large and each slow reader has a batch in memory. */
const BATCH = 64;

/**
 * Yields the events of a run after a sequence number, then every further event as it is committed, in order and without
 * gaps. An empty batch is a keep-alive. Ends when the run has ended and no more events can follow, or when `signal` is
 * aborted.
 *
 * Errors: run_not_found, before the first batch.
 */
export async function* watchRunEvents(
  deps: WatchRunEventsDeps,
  caller: Caller,
  runUid: string,
  afterSeq: number,
  signal: AbortSignal,
): AsyncGenerator<readonly RunEvent[]> {
  const run = await deps.getVisibleRun(caller, runUid);
  let after = afterSeq;
  let sentAtMs = deps.clock.monotonicMs();
  while (!signal.aborted) {
    const seen = new AbortController();
    // Subscribes before reading: an event that is committed in between wakes the loop.
    const appended = deps.wakeups.wait(
      topics.runEvents(run.uid),
      Math.min(deps.timings.pollMs, deps.timings.keepAliveMs),
      AbortSignal.any([signal, seen.signal]),
    );
    // Read before the events: all events that were committed until then are read below.
    const isRunSettled = await deps.isSettled(run.uid);
    const events = await deps.listRunEvents(run.uid, after, BATCH);
    const isQuiet = events.length === 0;
    if (isQuiet && isRunSettled) {
      seen.abort();
      return;
    }
    if (!isQuiet || deps.clock.monotonicMs() - sentAtMs >= deps.timings.keepAliveMs) {
      yield events;
      sentAtMs = deps.clock.monotonicMs();
      after = events.at(-1)?.seq ?? after;
    }
    if (!isQuiet) seen.abort();
    await appended;
  }
}
