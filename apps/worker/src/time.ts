/** Stops a timer that has not fired; afterwards nothing happens. */
export type CancelTimer = () => void;

/** Where waiting comes from, so that tests need not wait. */
export interface Timers {
  /** Calls `run` once after `ms` milliseconds. */
  after(ms: number, run: () => void): CancelTimer;
}

/** Node fires timers that are longer at once. */
const LONGEST_MS = 2 ** 31 - 1;

/** The timers of the process; nothing is waited for longer than 24 days. */
export const systemTimers: Timers = Object.freeze({
  after(ms: number, run: () => void): CancelTimer {
    const timer = setTimeout(run, Math.min(ms, LONGEST_MS));
    return () => clearTimeout(timer);
  },
});

/** Waits `ms` milliseconds; rejects with the reason of `signal` as soon as it is aborted. */
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

/** Resolves when the promise has settled, at the latest after `ms` milliseconds. */
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

/** The promise's outcome, or the abort reason if that comes first. The promise itself goes on. */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}
