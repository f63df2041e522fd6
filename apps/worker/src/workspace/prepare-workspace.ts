import { chmod, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { isDomainError } from "@millwright/errors";
import type { ExecutionContext } from "../context/execution-context.ts";
import { cloneRepository, type Clone } from "../git/clone.ts";
import { GitFailed, HostGit } from "../git/host-git.ts";
import { directoriesOf, nameOf, type WorkingCopy } from "../git/repository.ts";
import { restoreSnapshot, resetClone } from "../git/restore-snapshot.ts";
import { workspaceState } from "../git/workspace-state.ts";
import { limitsFor } from "../sandbox/limits.ts";
import { PlatformShell } from "../sandbox/platform-shell.ts";
import { hostOf } from "../sandbox/spec.ts";
import type { ParkedWorkspace } from "../state/parked-workspaces.ts";
import type { Conversation } from "../conversation/conversation.ts";

const ARCHIVE = "snapshot.tar";
const EMPTY_TIMEOUT_MS = 120_000;
/** Deletes the content of the workspace. It first makes directories accessible that an agent made unreadable. */
const EMPTY = `set -eu; chmod u+rwx "$WORKSPACE"; find "$WORKSPACE" -mindepth 1 -type d ! -perm -700 -exec chmod u+rwx {} \\;
find "$WORKSPACE" -mindepth 1 -delete
`;

export type PreparedWorkspace = {
  readonly copies: readonly WorkingCopy[];
  /** False if a saved workspace exists and could not be restored. */
  readonly isRestored: boolean;
};

type Preparation = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly shell: PlatformShell;
  readonly inbox: string;
  readonly signal: AbortSignal;
};

/**
 * Fills the workspace before the agent works in it: with the parked workspace if it is unchanged, otherwise with fresh
 * clones and the run's newest snapshot. All work in the workspace is done by scripts in sandboxes that have ended
 * before the next step. The worker itself writes only to the inbox, which no sandbox can write to. Throws `GitFailed`
 * or the reason of `signal`.
 */
export async function prepareWorkspace(
  ctx: ExecutionContext,
  conversation: Conversation,
  parked: ParkedWorkspace | undefined,
  signal: AbortSignal,
): Promise<PreparedWorkspace> {
  const { repositories, snapshotUrl } = ctx.assignment;
  if (!parked && repositories.length === 0 && snapshotUrl === "") return { copies: [], isRestored: true };
  const inbox = join(ctx.dir, "inbox");
  await mkdir(inbox, { mode: 0o755 });
  try {
    return await PlatformShell.use(
      {
        host: hostOf(ctx.sandbox),
        limits: limitsFor(hostOf(ctx.sandbox).limits, ctx.assignment.instanceShape),
        dir: ctx.dir,
        inbox,
        signal,
        ownSandbox: (sandbox) => ctx.ownSandbox(sandbox),
      },
      async (shell) => {
        const preparation = { ctx, conversation, shell, inbox, signal };
        const reused = parked && (await reuse(preparation, parked));
        if (reused) return { copies: reused, isRestored: true };
        const clones = await cloneAll(preparation);
        return { copies: clones.map(({ copy }) => copy), isRestored: await restore(preparation, clones) };
      },
    );
  } finally {
    await rm(inbox, { recursive: true, force: true });
  }
}

/**
 * Returns the working copies of a parked workspace if it is unchanged since it was saved; otherwise empties the
 * workspace. The repositories are taken from the assignment, because their credentials may be new.
 */
async function reuse(
  { ctx, conversation, shell }: Preparation,
  parked: ParkedWorkspace,
): Promise<WorkingCopy[] | undefined> {
  const { repositories } = ctx.assignment;
  const copies = parked.copies.map((copy) => ({
    ...copy,
    repository: repositories.find(
      (candidate) =>
        nameOf(candidate) === nameOf(copy.repository) && candidate.workBranch === copy.repository.workBranch,
    ),
  }));
  const hasRepository = (copy: (typeof copies)[number]): copy is WorkingCopy => copy.repository !== undefined;
  if (copies.every(hasRepository) && copies.length === repositories.length && (await isAsSaved(shell, parked))) {
    conversation.record("workspace_reused", {});
    return copies;
  }
  const { exitCode, output } = await shell.run(EMPTY, { timeoutMs: EMPTY_TIMEOUT_MS });
  if (exitCode !== 0) throw new GitFailed("The workspace cannot be emptied", output);
  return undefined;
}

const isAsSaved = (shell: PlatformShell, { copies, fingerprint }: ParkedWorkspace): Promise<boolean> =>
  workspaceState(shell, copies).then(
    (state) => state.fingerprint === fingerprint,
    (error: unknown) => {
      if (error instanceof GitFailed) return false;
      throw error;
    },
  );

async function cloneAll({ ctx, conversation, shell, inbox, signal }: Preparation): Promise<Clone[]> {
  const { repositories, restarted, executionSeq } = ctx.assignment;
  if (repositories.length === 0) return [];
  const cacheDir = ctx.cacheDir ?? join(ctx.dir, "repositories");
  const git = await HostGit.at(cacheDir, signal, ctx.gitCaFile);
  const directories = directoriesOf(repositories);
  const clones: Clone[] = [];
  for (const [index, repository] of repositories.entries()) {
    const pushed = conversation.lastPushed(nameOf(repository), repository.workBranch);
    const clone = await cloneRepository(repository, {
      ...{ git, outbound: ctx.outbound, cacheDir, shell, inbox, directory: directories[index] ?? repository.name },
      // The run's events may lack the last push of a lost attempt, so a new attempt uses the branch's current commit.
      expectedSha: restarted ? undefined : pushed,
      startSha: executionSeq > 1 ? pushed : undefined,
    });
    conversation.record("repository_cloned", {
      owner: repository.owner,
      name: repository.name,
      branch: repository.workBranch,
      base_sha: clone.copy.baseSha,
    });
    clones.push(clone);
  }
  return clones;
}

/**
 * Restores the snapshot and returns whether this succeeded. If the snapshot cannot be downloaded or restored, the run
 * continues with its clones and a warning. Throws `GitFailed` if the run requires this workspace.
 */
async function restore(
  { ctx, conversation, shell, inbox, signal }: Preparation,
  clones: readonly Clone[],
): Promise<boolean> {
  if (ctx.assignment.snapshotUrl === "") return true;
  try {
    await ctx.platform.download(ctx.assignment.snapshotUrl, join(inbox, ARCHIVE));
    await chmod(join(inbox, ARCHIVE), 0o644);
    await restoreSnapshot(
      shell,
      clones.map(({ copy }) => copy),
      ARCHIVE,
    );
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof GitFailed || isDomainError(error))) throw error;
    if (ctx.assignment.snapshotRequired)
      throw new GitFailed(
        "The workspace that the run requires cannot be restored",
        error.message,
        "workspace_not_restored",
      );
    conversation.record("warning", {
      text: `The saved workspace could not be restored; the run continues without it: ${error.message}`,
    });
    for (const { copy, start } of clones) await resetClone(shell, copy, start);
    return false;
  }
}
