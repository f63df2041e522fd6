import { platformError } from "./platform-error.ts";
import type { Timings } from "./timings.ts";
import { pause, type Timers } from "../time/timers.ts";

export type RetryDeps = {
  readonly timers: Timers;
  readonly timings: () => Timings;
};

/**
 * Returns a doubling delay with jitter: between half and all of `first × 2^attempt`, at most `max`. `attempt` counts
 * from 0.
 */
export function retryDelayMs(
  { retryFirstMs, retryMaxMs }: Pick<Timings, "retryFirstMs" | "retryMaxMs">,
  attempt: number,
  random: number = Math.random(),
): number {
  return Math.min(retryMaxMs, retryFirstMs * 2 ** Math.min(attempt, 30)) * (0.5 + random / 2);
}

/**
 * Repeats `act` while its error is retryable, until `signal` is aborted (then rejects with its reason). Throws a
 * `DomainError` that is not retryable.
 */
export async function retrying<T>(deps: RetryDeps, signal: AbortSignal, act: () => Promise<T>): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    signal.throwIfAborted();
    try {
      return await act();
    } catch (error) {
      signal.throwIfAborted();
      const failure = platformError(error);
      if (!failure.retryable) throw failure;
      await pause(
        deps.timers,
        Math.max(retryDelayMs(deps.timings(), attempt), (failure.retryAfterSeconds ?? 0) * 1_000),
        signal,
      );
    }
  }
}
