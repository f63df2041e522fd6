/** Cancels a timer that has not fired. Otherwise does nothing. */
export type CancelTimer = () => void;

/** A source of timers that tests can replace. */
export interface Timers {
  /** Calls `run` once after `ms` milliseconds. */
  after(ms: number, run: () => void): CancelTimer;
}

/** Node.js fires timers with a longer delay immediately. */
const LONGEST_MS = 2 ** 31 - 1;

/** The timers of the process. The maximum delay is 24 days. */
export const systemTimers: Timers = Object.freeze({
  after(ms: number, run: () => void): CancelTimer {
    const timer = setTimeout(run, Math.min(ms, LONGEST_MS));
    return () => clearTimeout(timer);
  },
});

/** Waits `ms` milliseconds. Rejects with the reason of `signal` as soon as it is aborted. */
export function pause(timers: Timers, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason as Error);
    const cancel = timers.after(ms, () => {
      signal.removeEventListener("abort", abort);
      resolve();
    });
    function abort(): void {
      cancel();
      reject(signal.reason as Error);
    }
    signal.addEventListener("abort", abort, { once: true });
  });
}

/** Resolves when the promise has settled, or after `ms` milliseconds at the latest. */
export function atMost(timers: Timers, ms: number, promise: Promise<unknown>): Promise<void> {
  return new Promise((resolve) => {
    const cancel = timers.after(ms, resolve);
    const settled = (): void => {
      cancel();
      resolve();
    };
    promise.then(settled, settled);
  });
}

/**
 * Returns the promise's outcome, or rejects with the abort reason if the abort comes first. The abort does not stop the
 * promise's own work.
 */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
