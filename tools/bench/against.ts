import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { differencesOf, tableOfDifferences, type Turn } from "./differences.ts";
import { ROOT } from "./platform.ts";
import type { Results } from "./results.ts";

/** Returns the commit of a revision of this repository; undefined if there is none. */
export function commitOf(revision: string): string | undefined {
  try {
    return git("rev-parse", "--verify", "--quiet", "--end-of-options", `${revision}^{commit}`);
  } catch {
    return undefined;
  }
}

/**
 * Runs the benchmarks of a commit and of the working tree in turns, each with its own code, and returns the differences
 * as text. The commit is checked out into a temporary worktree with its own packages. `options` are passed to both.
 * Throws an Error if a benchmark writes no results.
 */
export async function compareWith(commit: string, turnCount: number, options: readonly string[]): Promise<string> {
  const dir = mkdtempSync(join(tmpdir(), "millwright-bench-against-"));
  const tree = join(dir, "tree");
  try {
    git("worktree", "add", "--detach", tree, commit);
    const code = await run("npm", ["ci", "--prefer-offline", "--no-audit", "--no-fund"], tree);
    if (code !== 0) throw new Error(`The packages of ${commit} cannot be installed: npm ci exited with ${code}.`);
    const turns: Turn[] = [];
    for (let turn = 1; turn <= turnCount; turn++) {
      const measure = (name: "before" | "after"): Promise<Results> => {
        process.stderr.write(`turn ${turn} of ${turnCount}: ${name === "before" ? commit : "working tree"} …\n`);
        return measureTree(name === "before" ? tree : ROOT, join(dir, `${name}-${turn}`), options);
      };
      // The order changes with each turn, so that neither revision always runs on the warmer machine.
      if (turn % 2 === 1) turns.push({ before: await measure("before"), after: await measure("after") });
      else turns.push({ after: await measure("after"), before: await measure("before") });
    }
    return `Working tree divided by ${commit.slice(0, 12)}, ${turnCount} turns:\n\n${tableOfDifferences(differencesOf(turns))}`;
  } finally {
    if (existsSync(tree)) git("worktree", "remove", "--force", tree);
    rmSync(dir, { recursive: true, force: true });
  }
}

async function measureTree(tree: string, out: string, options: readonly string[]): Promise<Results> {
  const code = await run("npm", ["run", "--silent", "bench", "--", ...options, "--out", out], tree);
  const file = join(out, "results.json");
  if (!existsSync(file)) throw new Error(`The benchmark in ${tree} exited with ${code} and without results.`);
  return JSON.parse(readFileSync(file, "utf8")) as Results;
}

/**
 * Runs a command and returns its exit code. Its output goes to stderr. If this process receives SIGINT or SIGTERM, the
 * command and its children are stopped first, and an Error is thrown.
 */
async function run(command: string, args: readonly string[], cwd: string): Promise<number | null> {
  // A group of its own, because npm does not forward signals to the commands of its shell.
  const child = spawn(command, args, { cwd, detached: true, stdio: ["ignore", 2, 2] });
  let isStopped = false;
  const stop = (): void => {
    isStopped = true;
    process.kill(-child.pid!, "SIGTERM");
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, stop);
  try {
    const [code] = (await once(child, "exit")) as [number | null];
    if (isStopped) throw new Error("The comparison was stopped.");
    return code;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, stop);
  }
}

const git = (...args: string[]): string =>
  execFileSync("git", args, { cwd: ROOT, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
