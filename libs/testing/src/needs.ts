import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { test } from "@jest/globals";

/**
 * Declares a test that needs a program on the PATH. If it is absent, the test is skipped and its name states the program; with
 * `CI=true` it runs and fails.
 */
export function needs(
  program: "nats-server" | "bwrap" | "git" | "script",
  name: string,
  f: () => Promise<void> | void,
  timeoutMs?: number,
): void {
  const canRun = isExpected(program);
  const declare = canRun ? test : test.skip;
  declare(canRun ? name : `${name} (needs ${program})`, f, timeoutMs);
}

/** Returns whether a program is present, or must be: with `CI=true`. */
export const isExpected = (program: string): boolean => isOnPath(program) || process.env["CI"] === "true";

function isOnPath(program: string): boolean {
  return (process.env["PATH"] ?? "").split(delimiter).some((dir) => {
    try {
      accessSync(join(dir, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
