import { spawn } from "node:child_process";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

export type CommandRun = {
  /** For `/bin/sh -c`. */
  readonly command: string;
  /** Given on standard input, as JSON. */
  readonly input: unknown;
  /** All of its environment. Nothing secret: others on the machine may read it. */
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
  /** Where what it writes is added, both streams together. A file, so that what it leaves running never finds a closed pipe. */
  readonly outputFile: string;
};

/** How a command ended; `output`: the last of what it wrote. */
export type CommandEnd = {
  readonly outcome: "ok" | "failed" | "timeout";
  readonly how: string;
  readonly output: string;
};

const OUTPUT_BYTES = 1_000;

/**
 * Runs an operator's command in a process group of its own. What it leaves running in the background is its own affair; a command
 * that takes too long is killed with its whole group. Never rejects.
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
    const settle = (outcome: CommandEnd["outcome"], how: string): void => {
      clearTimeout(late);
      const lastOutput = lastOf(output, begin);
      closeSync(output);
      resolve({ outcome, how, output: lastOutput });
    };
    child.once("error", (error) => settle("failed", `could not be started: ${error.message}`));
    child.once("exit", (code, signal) => {
      if (isLate) settle("timeout", `took longer than ${Math.round(timeoutMs / 1_000)} s`);
      else
        settle(code === 0 ? "ok" : "failed", code === null ? `was ended by ${signal}` : `ended with exit code ${code}`);
    });
    child.stdin?.on("error", () => {}); // it need not read it
    child.stdin?.end(`${JSON.stringify(input)}\n`);
  });
}

function killGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch {
    // it has just ended
  }
}

function lastOf(file: number, begin: number): string {
  const { size } = fstatSync(file);
  const from = Math.max(begin, size - OUTPUT_BYTES);
  const bytes = Buffer.alloc(size - from);
  readSync(file, bytes, 0, bytes.length, from);
  return bytes.toString("utf8").trim();
}
