import type { Sandbox } from "../sandbox/sandbox.ts";
import { GitFailed } from "./host-git.ts";
import { isSha, type WorkingCopy } from "./repository.ts";
import { sandboxGit } from "./sandbox-git.ts";

export const headOf = async (sandbox: Sandbox, copy: WorkingCopy, signal?: AbortSignal): Promise<string> => {
  const sha = (await sandboxGit(sandbox, copy, ["rev-parse", "--verify", "HEAD"], { signal })).trim();
  if (!isSha(sha)) throw new GitFailed(`Cannot read ${copy.directory}`, "HEAD is not a commit");
  return sha;
};

/** Returns whether there are uncommitted changes, including untracked files but not ignored ones. */
export const isDirty = async (sandbox: Sandbox, copy: WorkingCopy, signal?: AbortSignal): Promise<boolean> =>
  (await sandboxGit(sandbox, copy, ["status", "--porcelain"], { signal })).trim() !== "";

/** Commits all uncommitted changes and returns the current commit. Throws `GitFailed`. */
export async function commitAll(
  sandbox: Sandbox,
  copy: WorkingCopy,
  message: string,
  signal?: AbortSignal,
): Promise<string> {
  const options = { signal };
  if (await isDirty(sandbox, copy, signal)) {
    await sandboxGit(sandbox, copy, ["add", "--all"], options);
    await sandboxGit(
      sandbox,
      copy,
      ["-c", "commit.gpgSign=false", "commit", "--quiet", "--no-verify", "--message", message],
      options,
    );
  }
  return headOf(sandbox, copy, signal);
}
