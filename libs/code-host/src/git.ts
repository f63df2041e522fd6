import { spawn } from "node:child_process";
import { DomainError } from "@millwright/errors";

const TIMEOUT_MS = 30_000;

/**
 * Disables the machine's and the user's configuration, prompts and fetches. Git always reads the repository's own
 * configuration, so commands that could run programs named there must be given options against it.
 */
const ENVIRONMENT = {
  PATH: "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin",
  HOME: "/nonexistent",
  LC_ALL: "C",
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_ATTR_NOSYSTEM: "1",
  GIT_TERMINAL_PROMPT: "0",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_NO_LAZY_FETCH: "1",
  GIT_NO_REPLACE_OBJECTS: "1",
};

const settings = (gitDir: string): string[] => [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.quotePath=false",
  "protocol.allow=never",
  `safe.directory=${gitDir}`, // the operator allowed this root; its owner may be another user
];

export type GitResult = { readonly exitCode: number; readonly stdout: Buffer; readonly isTruncated: boolean };

/**
 * Runs a read-only git command in a bare repository. Truncates output beyond `stdoutBytesMax` and ends the command.
 *
 * Errors: git_failed (internal) if git is missing, hangs (30 s) or is killed. A non-zero exit is a result.
 */
export async function runGit(
  gitDir: string,
  args: readonly string[],
  stdoutBytesMax = 16 * 1024 * 1024,
): Promise<GitResult> {
  const configured = settings(gitDir).flatMap((setting) => ["-c", setting]);
  const child = spawn("git", [...configured, "--git-dir", gitDir, ...args], {
    env: ENVIRONMENT,
    cwd: "/",
    stdio: ["ignore", "pipe", "ignore"],
    timeout: TIMEOUT_MS,
    killSignal: "SIGKILL",
  });
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  const chunks: Buffer[] = [];
  let bytes = 0;
  child.stdout.on("data", (chunk: Buffer) => {
    if (bytes < stdoutBytesMax) chunks.push(chunk.subarray(0, stdoutBytesMax - bytes));
    bytes += chunk.length;
    if (bytes > stdoutBytesMax) child.kill("SIGKILL");
  });
  const exitCode = await exit.catch((cause: unknown) => {
    throw gitFailed(args, cause);
  });
  const isTruncated = bytes > stdoutBytesMax;
  if (exitCode === null && !isTruncated) throw gitFailed(args, new Error("killed, or out of time"));
  return { exitCode: exitCode ?? 0, stdout: Buffer.concat(chunks), isTruncated };
}

const gitFailed = (args: readonly string[], cause: unknown): DomainError =>
  new DomainError({
    kind: "internal",
    reason: "git_failed",
    message: "A repository could not be read with git. The log of the platform has the cause.",
    metadata: { command: args[0] ?? "" },
    cause,
  });
