import { spawn } from "node:child_process";

/** What a git command left: its exit code (null: killed, or out of time), its output, and the beginning of its complaint. */
export type GitResult = { exitCode: number | null; stdout: Buffer; complaint: string; isOutOfTime: boolean };

export type GitCommand = {
  args: readonly string[];
  gitDir: string;
  /** The only configuration file that git reads besides the repository's, which we made. */
  configFile: string;
  /** "https" or "file": git refuses every other transport. */
  protocol: string;
  timeoutMs: number;
  stdin?: string;
  stdoutBytesMax: number;
  /** Of any one file that the command writes. */
  fileBytesMax: number;
  /** Further variables, for what must be in no argument. */
  environment?: Readonly<Record<string, string>>;
};

/**
 * Runs git against a repository that we made ourselves, shielded from the machine: no system or user configuration, no prompts,
 * no hooks, one transport, and of credential helpers only what the given configuration says. Ends the command with all its children when it is out of time or says too much.
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
      // it is gone already
    }
  };
  let [bytes, complaint, isOutOfTime] = [0, "", false];
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
    if (complaint.length < 4_096) complaint += text;
  });
  child.stdin.on("error", () => {}); // it ended before it had read everything: its exit code says so
  child.stdin.end(stdin ?? "");
  try {
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject).once("close", resolve);
    });
    return {
      exitCode: bytes > stdoutBytesMax ? null : exitCode,
      stdout: Buffer.concat(chunks),
      complaint: complaint.trim(),
      isOutOfTime,
    };
  } finally {
    clearTimeout(timer);
  }
}
