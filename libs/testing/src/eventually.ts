import { setTimeout as pause } from "node:timers/promises";

/** How many times as long as usual things may take here. */
export const timeoutFactor = (): number => Number(process.env["MILLWRIGHT_PATIENCE"] ?? 1);

/** Repeats `f` until it neither throws nor answers false, and returns its value. Errors: the last one, after `timeoutMs`, by default 60 s × `timeoutFactor()`. */
export async function eventually<T>(
  f: () => T | Promise<T>,
  { timeoutMs = 60_000 * timeoutFactor(), everyMs = 20 } = {},
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    try {
      const value = await f();
      if (value !== false) return value;
      if (Date.now() >= deadline) throw new Error(`Still false after ${timeoutMs} ms.`);
    } catch (error) {
      if (Date.now() >= deadline) throw error;
    }
    await pause(everyMs);
  }
}
