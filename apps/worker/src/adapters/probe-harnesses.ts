import { existsSync, realpathSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { HARNESS, type HarnessProgram, type SandboxHost } from "../sandbox/spec.ts";
import { startWorkspaceSandbox } from "../sandbox/start-sandbox.ts";
import { programArgv } from "./harness-program.ts";

const VERSION_TIMEOUT_MS = 30_000;

export type ProbedHarnesses = { readonly host: SandboxHost; readonly warnings: readonly string[] };

/**
 * Finds the operator's agent programs and runs each in a sandbox. A program that does not print its version there is
 * not offered. `programs` maps types to paths; "" means none.
 */
export async function probeHarnesses(
  host: SandboxHost,
  programs: Readonly<Record<string, string>>,
): Promise<ProbedHarnesses> {
  const harnesses = new Map<string, HarnessProgram>();
  const warnings: string[] = [];
  for (const [type, path] of Object.entries(programs)) {
    if (path === "") continue;
    if (host.kind !== "bwrap") {
      warnings.push(`The harness ${type} is not offered: it requires a sandbox.`);
      continue;
    }
    try {
      const program = realpathSync(path);
      if (!statSync(program).isFile()) throw new Error("it is not a file.");
      const directory = packageOf(program);
      const place = { directory, file: relative(directory, program) };
      harnesses.set(type, { ...place, version: await versionOf(host, place) });
    } catch (error) {
      warnings.push(
        `The harness ${type} (${path}) is not offered: ${error instanceof Error ? error.message : "unknown error"}`,
      );
    }
  }
  return { host: harnesses.size === 0 ? host : { ...host, harnesses }, warnings };
}

/** Returns the directory that is mounted for a program: its own directory, or the package that a script belongs to. */
function packageOf(program: string): string {
  const above = (directory: string): string | undefined =>
    existsSync(join(directory, "package.json"))
      ? directory
      : dirname(directory) === directory
        ? undefined
        : above(dirname(directory));
  return (programArgv(program).length > 1 && above(dirname(program))) || dirname(program);
}

async function versionOf(
  host: SandboxHost,
  { directory, file }: Pick<HarnessProgram, "directory" | "file">,
): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "millwright-probe-"));
  try {
    const sandbox = await startWorkspaceSandbox(host, dir, {}, { shown: [{ source: directory, target: HARNESS }] });
    try {
      const { exitCode, output } = await sandbox.exec([...programArgv(`${HARNESS}/${file}`), "--version"], {
        timeoutMs: VERSION_TIMEOUT_MS,
      });
      const version = /\d+\.\d+[^\s]*/.exec(output)?.[0];
      if (exitCode !== 0 || version === undefined)
        throw new Error(`it did not print its version (${exitCode ?? "ended"}: ${output.trim().slice(-300)}).`);
      return version.slice(0, 50);
    } finally {
      await sandbox.stop();
    }
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
}
