import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe } from "@jest/globals";
import { probeSandbox } from "../../src/sandbox/probe.ts";
import { isRunning } from "../../src/sandbox/processes.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { bareHost, type SandboxHost, type SandboxKind } from "../../src/sandbox/spec.ts";
import { startWorkspaceSandbox, type WorkspaceOptions } from "../../src/sandbox/start-sandbox.ts";

export const probe = await probeSandbox({ sandbox: "auto" });
afterAll(() => probe.host.cgroups?.close());

const isDeclared = probe.kind === "bwrap" || process.env["CI"] === "true";
const declareWhereItWorks = isDeclared ? describe : describe.skip;

/**
 * Declares tests that require a working bubblewrap. Without it, they are skipped with a name that states this, or fail
 * if `CI=true`.
 */
export function inBubblewrap(name: string, tests: () => void): void {
  declareWhereItWorks(isDeclared ? name : `${name} (needs a working bubblewrap)`, tests);
}

/** Declares the same tests for both kinds of sandbox. */
export function inEachSandbox(name: string, tests: (kind: SandboxKind) => void): void {
  inBubblewrap(`${name} (bwrap)`, () => tests("bwrap"));
  describe(`${name} (none)`, () => {
    tests("none");
  });
}

/** Calls `use` with a started sandbox, in a new directory unless one is given. Both are removed afterwards. */
export async function withSandbox(
  use: (sandbox: Sandbox, dir: string) => Promise<void>,
  {
    kind = "bwrap",
    host = bareHost(kind),
    env = {},
    dir: given,
    ...options
  }: { kind?: SandboxKind; host?: SandboxHost; env?: Record<string, string>; dir?: string } & WorkspaceOptions = {},
): Promise<void> {
  await withDirectory(async (own) => {
    const dir = given ?? own;
    const sandbox = await startWorkspaceSandbox(host, dir, env, options);
    try {
      await use(sandbox, dir);
    } finally {
      await sandbox.stop();
    }
  });
}

export async function withDirectory<T>(use: (dir: string) => Promise<T>): Promise<T> {
  const dir = await mkdtemp(join(tmpdir(), "millwright-worker-test-"));
  try {
    return await use(dir);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}

/** Returns the host processes whose command line contains `marker`. */
export function processesLike(marker: string): number[] {
  return readdirSync("/proc")
    .map(Number)
    .filter((pid) => {
      if (!Number.isInteger(pid) || pid === process.pid) return false;
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(marker) && isRunning(pid);
      } catch {
        return false;
      }
    });
}

let markers = 0;
/** Returns a duration for `sleep` that no other process uses. */
export const markedSeconds = (): string => `${600 + (markers += 1)}.${process.pid}${Date.now() % 100_000}`;
