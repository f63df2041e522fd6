import { spawn } from "node:child_process";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

export type CommandRun = {
  /** Passed to `/bin/sh -c`. */
  readonly command: string;
  /** Written to standard input as JSON. */
  readonly input: unknown;
  /** The complete environment. Must not contain secrets, because other users of this machine may be able to read it. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /**
   * Standard output and standard error are appended to this file. It is a file, not a pipe, so that background
   * processes of the command never write to a closed pipe.
   */
  readonly outputFile: string;
};

/** How a command ended. `output` is the last part of its output. */
export type CommandEnd = {
  readonly outcome: "ok" | "failed" | "timeout";
  readonly endDescription: string;
  readonly output: string;
};

const OUTPUT_BYTES = 1_000;

/**
 * Runs an operator's command in its own process group. Background processes that the command started are left running.
 * If the command exceeds its timeout, the whole group is killed. Never rejects.
 */
export function runCommand({ command, input, env, timeoutMs, outputFile }: CommandRun): Promise<CommandEnd> {
  return new Promise((resolve) => {
    const output = openSync(outputFile, "a+", 0o600);
    const begin = fstatSync(output).size;
    const child = spawn("/bin/sh", ["-c", command], { detached: true, stdio: ["pipe", output, output], env });
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      killGroup(child.pid);
    }, timeoutMs);
    const settle = (outcome: CommandEnd["outcome"], endDescription: string): void => {
      clearTimeout(late);
      const lastOutput = lastOf(output, begin);
      closeSync(output);
      resolve({ outcome, endDescription, output: lastOutput });
    };
    child.once("error", (error) => settle("failed", `could not be started: ${error.message}`));
    child.once("exit", (code, signal) => {
      if (isLate) settle("timeout", `took longer than ${Math.round(timeoutMs / 1_000)} s`);
      else
        settle(code === 0 ? "ok" : "failed", code === null ? `was ended by ${signal}` : `ended with exit code ${code}`);
    });
    child.stdin?.on("error", () => {}); // the command may exit without reading its input
    child.stdin?.end(`${JSON.stringify(input)}\n`);
  });
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // The process has already ended.
  }
}

function lastOf(file: number, begin: number): string {
  const { size } = fstatSync(file);
  const from = Math.max(begin, size - OUTPUT_BYTES);
  const bytes = Buffer.alloc(size - from);
  readSync(file, bytes, 0, bytes.length, from);
  return bytes.toString("utf8").trim();
}
