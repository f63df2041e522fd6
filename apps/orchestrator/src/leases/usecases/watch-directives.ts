import type { Timings } from "../../runs/domain/timings.ts";
import { pendingDirectives, type PendingDirectivesDeps } from "./pending-directives.ts";
import { topics, type Wakeups } from "../../storage/wakeups.ts";
import type { LinkedDirective } from "../../runs/domain/directive.ts";
import type { WorkerSession } from "../../runs/domain/worker-session.ts";

export type WatchDirectivesDeps = PendingDirectivesDeps & {
  readonly wakeups: Pick<Wakeups, "subscribe" | "wait">;
  readonly leaseWork: { isWaiting(sessionUid: string): boolean };
  readonly timings: Pick<Timings, "pollMs" | "keepAliveMs">;
  /** Aborted when the service stops. Workers then reconnect to another process. */
  readonly stopping: AbortSignal;
};

export type DirectiveUpdate = { readonly directives: readonly LinkedDirective[]; readonly workAvailable: boolean };

/**
 * Yields a worker's directives as they are stored, whether work is available (unless a poll of the worker waits for it),
 * and a keep-alive at least every `keepAliveMs`. Each stream sends a directive once; heartbeats send it again until it
 * is acknowledged.
 */
export async function* watchDirectives(
  deps: WatchDirectivesDeps,
  session: WorkerSession,
  clientSignal: AbortSignal,
): AsyncGenerator<DirectiveUpdate> {
  const { pollMs, keepAliveMs } = deps.timings;
  const signal = AbortSignal.any([clientSignal, deps.stopping]);
  let sent = new Map<string, number>(); // only of pending directives: a stream may be open for weeks
  let isWorkNotified = false;
  let wake = (): void => {};
  const notify = (): void => wake();
  const unsubscribes = [
    deps.wakeups.subscribe(topics.session(session.uid), notify),
    deps.wakeups.subscribe(topics.work, () => {
      if (deps.leaseWork.isWaiting(session.uid)) return;
      isWorkNotified = true;
      notify();
    }),
  ];
  try {
    let quietMs = keepAliveMs; // the first message confirms that the stream is open
    while (!signal.aborted) {
      const notified = new Promise<void>((resolve) => (wake = resolve));
      const workAvailable = isWorkNotified;
      isWorkNotified = false;
      const pending = await pendingDirectives(deps, session);
      const directives = pending.filter((directive) => directive.seq > (sent.get(attemptOf(directive)) ?? 0));
      sent = new Map(pending.map((directive) => [attemptOf(directive), directive.seq])); // ordered by seq: the last entry wins
      if (signal.aborted) return; // the reader disconnected during the query
      if (directives.length > 0 || workAvailable || quietMs >= keepAliveMs) {
        yield { directives, workAvailable };
        quietMs = 0;
      }
      const waitMs = Math.min(pollMs, keepAliveMs);
      const ended = new AbortController();
      // All streams poll at the same time, so that their queries are batched.
      await Promise.race([
        notified,
        deps.wakeups.wait(topics.directives, waitMs, AbortSignal.any([signal, ended.signal])),
      ]);
      ended.abort();
      quietMs += waitMs;
    }
  } finally {
    for (const unsubscribe of unsubscribes) unsubscribe();
  }
}

const attemptOf = ({ executionId, attempt }: LinkedDirective): string => `${executionId}.${attempt}`;
