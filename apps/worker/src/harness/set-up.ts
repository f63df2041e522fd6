import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { isDomainError } from "@millwright/errors";
import type { ExecutionContext } from "../executions/execution-context.ts";
import { cloneRepository } from "../git/clone.ts";
import { headOf } from "../git/commit.ts";
import { GitFailed, HostGit } from "../git/host-git.ts";
import { directoriesOf, nameOf, type WorkingCopy } from "../git/repository.ts";
import { restoreSnapshot, startOver } from "../git/restore-snapshot.ts";
import { SandboxRefusal } from "../sandbox/channel.ts";
import { lastLines } from "../sandbox/last-lines.ts";
import { FileTooLarge, type Sandbox } from "../sandbox/sandbox.ts";
import type { ParkedWorkspace } from "../state/parked-workspaces.ts";
import { removeTree } from "../state/remove-tree.ts";
import { workspaceState } from "../git/workspace-state.ts";
import type { Workspace } from "../tools/tool.ts";
import type { Conversation } from "./conversation.ts";

const SETUP_TIMEOUT_SECONDS = 15 * 60;
/** Exit code that is shown for a command that was ended; as `timeout` has it. */
const ENDED_EXIT_CODE = 124;
const SNAPSHOT_ARCHIVE = "snapshot-in.tar";

/** The workspace could not be made ready; the text is for people. */
export class SetupFailed extends Error {
  readonly reason: string;
  /** As it was left. */
  readonly workspace: Workspace;
  constructor(reason: string, message: string, workspace: Workspace) {
    super(message);
    this.name = "SetupFailed";
    this.reason = reason;
    this.workspace = workspace;
  }
}

export type ReadyWorkspace = {
  readonly workspace: Workspace;
  /** False: a saved workspace was there, and could not be had. */
  readonly isRestored: boolean;
};

/**
 * Makes the workspace ready in an empty sandbox: fresh clones, the newest saved state of the run, setup commands (which are repeatable by
 * contract). What the execution before it left on this worker, and saved, is taken as it lies there. In a new sandbox over the directories of one that died, `before` is there already. Errors: SetupFailed, the abort reason of the execution.
 */
export async function setUp(ctx: ExecutionContext, conversation: Conversation, sandbox: Sandbox, before?: Workspace, parked?: ParkedWorkspace): Promise<ReadyWorkspace> {
  const seconds = ctx.assignment.setupTimeoutSeconds || SETUP_TIMEOUT_SECONDS;
  const timeout = AbortSignal.timeout(seconds * 1_000);
  const signal = AbortSignal.any([ctx.signal, timeout]);
  let workspace: Workspace = before ? { ...before, sandbox } : workspaceIn(sandbox, []);
  const failed = (reason: string, message: string): SetupFailed => new SetupFailed(reason, message, workspace);
  try {
    const kept = parked && (await reuse(ctx, conversation, sandbox, parked));
    if (!before) workspace = workspaceIn(sandbox, kept ?? (await cloneAll(ctx, conversation, sandbox, signal)));
    const isRestored = before !== undefined || kept !== undefined || (await restore(ctx, conversation, sandbox, workspace.copies, signal));
    const refusal = await runSetupCommands(ctx, conversation, workspace, signal);
    if (refusal !== undefined) throw failed("setup_command_failed", refusal);
    return { workspace, isRestored };
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (timeout.aborted) throw failed("setup_timeout", `Setting up took longer than ${seconds} s.`);
    if (error instanceof GitFailed || error instanceof SandboxRefusal) throw failed("workspace_setup", error.message);
    if (["ENOSPC", "EDQUOT"].includes(String((error as NodeJS.ErrnoException).code))) throw failed("workspace_setup", "The worker's disk is full.");
    throw error;
  }
}

function workspaceIn(sandbox: Sandbox, copies: readonly WorkingCopy[]): Workspace {
  const base = copies.length === 1 && copies[0] ? `${sandbox.workspace}/${copies[0].directory}` : sandbox.workspace;
  return { sandbox, copies, base, cwd: base };
}

/** The copies in a parked workspace that is as it was saved; else it is emptied. Credentials may be new, so repositories are as the assignment has them. */
async function reuse(ctx: ExecutionContext, conversation: Conversation, sandbox: Sandbox, parked: ParkedWorkspace): Promise<WorkingCopy[] | undefined> {
  const { repositories } = ctx.assignment;
  const copies = parked.copies.map((copy) => ({ ...copy, repository: repositories.find((one) => nameOf(one) === nameOf(copy.repository) && one.workBranch === copy.repository.workBranch) }));
  const isWhole = (copy: (typeof copies)[number]): copy is WorkingCopy => copy.repository !== undefined;
  if (copies.every(isWhole) && copies.length === repositories.length && (await isAsSaved(sandbox, parked))) {
    conversation.record("workspace_reused", {});
    return copies;
  }
  const workspace = join(ctx.dir, "workspace");
  for (const name of await readdir(workspace)) await removeTree(join(workspace, name));
  return undefined;
}

const isAsSaved = (sandbox: Sandbox, { copies, fingerprint }: ParkedWorkspace): Promise<boolean> =>
  workspaceState(sandbox, copies).then(
    (state) => state.fingerprint === fingerprint,
    (error: unknown) => {
      if (error instanceof GitFailed) return false;
      throw error;
    },
  );

async function cloneAll(ctx: ExecutionContext, conversation: Conversation, sandbox: Sandbox, signal: AbortSignal): Promise<WorkingCopy[]> {
  const { repositories, restarted, executionSeq } = ctx.assignment;
  if (repositories.length === 0) return [];
  const cacheDir = ctx.cacheDir ?? join(ctx.dir, "repositories");
  const git = await HostGit.at(cacheDir, signal);
  const directories = directoriesOf(repositories);
  const copies: WorkingCopy[] = [];
  for (const [index, repository] of repositories.entries()) {
    const pushed = conversation.lastPushed(nameOf(repository), repository.workBranch);
    const copy = await cloneRepository(repository, {
      git,
      outbound: ctx.outbound,
      cacheDir,
      workspace: join(ctx.dir, "workspace"),
      directory: directories[index] ?? repository.name,
      // What a lost attempt pushed last may not be in the run's events: a new attempt takes the branch as it finds it.
      expectedSha: restarted ? undefined : pushed,
      startSha: executionSeq > 1 ? pushed : undefined,
    });
    await sandbox.handOver(join(ctx.dir, "workspace", copy.directory));
    conversation.record("repository_cloned", { owner: repository.owner, name: repository.name, branch: repository.workBranch, base_sha: copy.baseSha });
    copies.push(copy);
  }
  return copies;
}

/** A snapshot that cannot be had or restored costs the files, not the run: it goes on from its clones, and says so. Whether it has what there was. */
async function restore(ctx: ExecutionContext, conversation: Conversation, sandbox: Sandbox, copies: readonly WorkingCopy[], signal: AbortSignal): Promise<boolean> {
  if (ctx.assignment.snapshotUrl === "") return true;
  const starts = await Promise.all(copies.map((copy) => headOf(sandbox, copy, signal)));
  try {
    await ctx.platform.download(ctx.assignment.snapshotUrl, join(ctx.dir, "exchange", SNAPSHOT_ARCHIVE));
    await sandbox.handOver(join(ctx.dir, "exchange", SNAPSHOT_ARCHIVE));
    await restoreSnapshot(sandbox, copies, SNAPSHOT_ARCHIVE, signal);
    return true;
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof GitFailed || error instanceof SandboxRefusal || error instanceof FileTooLarge || isDomainError(error))) throw error;
    conversation.record("warning", { text: `The saved workspace could not be restored, so this goes on without it: ${error.message}` });
    for (const [index, copy] of copies.entries()) await startOver(sandbox, copy, starts[index] ?? copy.baseSha, signal);
    return false;
  }
}

/** Answers what failed, for people. */
async function runSetupCommands(ctx: ExecutionContext, conversation: Conversation, { sandbox, base }: Workspace, signal: AbortSignal): Promise<string | undefined> {
  for (const command of ctx.assignment.setupCommands) {
    const run = await sandbox.exec(command, { cwd: base, timeoutMs: (ctx.assignment.setupTimeoutSeconds || SETUP_TIMEOUT_SECONDS) * 1_000, signal });
    const exitCode = run.exitCode ?? ENDED_EXIT_CODE;
    conversation.record("setup_command", { command, exit_code: exitCode, output: run.output });
    signal.throwIfAborted();
    if (exitCode !== 0) return `The setup command \`${command}\` failed with exit code ${exitCode}:\n${lastLines(run.output)}`;
  }
  return undefined;
}
