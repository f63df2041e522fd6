import { setTimeout as pause } from "node:timers/promises";

/** Returns the factor by which timeouts are longer on this machine (MILLWRIGHT_TEST_TIMEOUT_FACTOR). */
export const timeoutFactor = (): number => Number(process.env["MILLWRIGHT_TEST_TIMEOUT_FACTOR"] ?? 1);

/**
 * Calls `f` until it neither throws nor returns false, and returns its value. Throws the last error after `timeoutMs`,
 * by default 60 s × `timeoutFactor()`.
 */
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
