import { spawn } from "node:child_process";

/**
 * The result of a git command: its exit code (null: killed, or timed out), its output, and the beginning of its error
 * output.
 */
export type GitResult = { exitCode: number | null; stdout: Buffer; stderr: string; isOutOfTime: boolean };

export type GitCommand = {
  args: readonly string[];
  gitDir: string;
  /** The only configuration file that git reads, besides that of the temporary repository. */
  configFile: string;
  /** "https" or "file": git refuses every other transport. */
  protocol: string;
  timeoutMs: number;
  stdin?: string;
  stdoutBytesMax: number;
  /** Largest file that the command may write. */
  fileBytesMax: number;
  /** Additional variables, for values that must not be arguments. */
  environment?: Readonly<Record<string, string>>;
};

/**
 * Runs git in a temporary repository, isolated from the machine: no system or user configuration, prompts or hooks, one
 * transport, and only the credential helper of the given configuration. Kills the command and its children when it
 * times out or its output is too large.
 */
export async function runGit({
  args,
  gitDir,
  configFile,
  protocol,
  timeoutMs,
  stdin,
  stdoutBytesMax,
  fileBytesMax,
  environment,
}: GitCommand): Promise<GitResult> {
  const limited = `ulimit -f ${Math.ceil(fileBytesMax / 512)}; exec git "$@"`; // in blocks of 512 bytes
  const child = spawn("/bin/sh", ["-c", limited, "sh", "--git-dir", gitDir, "--literal-pathspecs", ...args], {
    cwd: gitDir,
    detached: true, // its own process group, so that its helpers end with it
    stdio: ["pipe", "pipe", "pipe"],
    env: {
      PATH: "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin",
      HOME: gitDir,
      LC_ALL: "C",
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_CONFIG_GLOBAL: configFile,
      GIT_ATTR_NOSYSTEM: "1",
      GIT_TERMINAL_PROMPT: "0",
      GIT_ASKPASS: "/bin/false",
      GIT_ALLOW_PROTOCOL: protocol,
      GIT_NO_LAZY_FETCH: "1",
      GIT_NO_REPLACE_OBJECTS: "1",
      ...environment,
    },
  });
  const end = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL");
    } catch {
      // already ended
    }
  };
  let [bytes, stderr, isOutOfTime] = [0, "", false];
  const timer = setTimeout(() => {
    isOutOfTime = true;
    end();
  }, timeoutMs);
  const chunks: Buffer[] = [];
  child.stdout.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > stdoutBytesMax) end();
    else chunks.push(chunk);
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    if (stderr.length < 4_096) stderr += text;
  });
  child.stdin.on("error", () => {}); // the command ended early; its exit code reports it
  child.stdin.end(stdin ?? "");
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject).once("close", resolve);
    });
    return {
      exitCode: bytes > stdoutBytesMax ? null : exitCode,
      stdout: Buffer.concat(chunks),
      stderr: stderr.trim(),
      isOutOfTime,
    };
  } finally {
    clearTimeout(timer);
  }
}
