import { lastLines } from "../sandbox/last-lines.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { GitFailed } from "./host-git.ts";
import type { WorkingCopy } from "./repository.ts";

/** The author and committer of the agent's commits, including those that the agent makes with git directly. */
export const AGENT_IDENTITY: Readonly<Record<string, string>> = {
  GIT_AUTHOR_NAME: "Millwright agent",
  GIT_AUTHOR_EMAIL: "agent@millwright.invalid",
  GIT_COMMITTER_NAME: "Millwright agent",
  GIT_COMMITTER_EMAIL: "agent@millwright.invalid",
};

const TIMEOUT_MS = 120_000;

/**
 * Runs git inside the agent's sandbox, in the agent's repository, without credentials. Its configuration and hooks have
 * no effect outside the sandbox. The agent may have forged the output. Throws `GitFailed`.
 */
export async function sandboxGit(
  sandbox: Sandbox,
  copy: Pick<WorkingCopy, "directory">,
  args: readonly string[],
  options: { signal?: AbortSignal; env?: Record<string, string> } = {},
): Promise<string> {
  const run = await sandbox.exec(["git", ...args], {
    cwd: `${sandbox.workspace}/${copy.directory}`,
    timeoutMs: TIMEOUT_MS,
    ...options,
  });
  options.signal?.throwIfAborted();
  if (run.exitCode !== 0)
    throw new GitFailed(
      `git ${args[0] ?? ""} failed in ${copy.directory}`,
      run.timedOut ? "it took too long" : lastLines(run.output),
    );
  return run.output;
}
