import type { ExecutionContext } from "../context/execution-context.ts";
import { GitFailed } from "../git/host-git.ts";
import type { WorkingCopy } from "../git/repository.ts";
import { SandboxRefusal } from "../sandbox/sandbox-errors.ts";
import { lastLines } from "../sandbox/last-lines.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ParkedWorkspace } from "../state/parked-workspaces.ts";
import type { Workspace } from "../tools/tool.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { prepareWorkspace } from "./prepare-workspace.ts";

const SETUP_TIMEOUT_SECONDS = 15 * 60;
/** The exit code that is recorded for a terminated command; the same as that of `timeout`. */
const ENDED_EXIT_CODE = 124;

/** Thrown if the workspace could not be prepared. The message is for users. */
export class SetupFailed extends Error {
  readonly reason: string;
  /** The workspace in the state in which the failure left it. */
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
  /** False if a saved workspace exists and could not be restored. */
  readonly isRestored: boolean;
};

/**
 * Prepares the workspace in an empty sandbox: fresh clones, the newest saved state of the run, and the setup commands,
 * which must be idempotent. A workspace that the previous execution saved and left on this worker is used in place. In
 * a new sandbox with the directories of an ended one, `before` is already complete. Throws `SetupFailed` or the abort
 * reason of the execution.
 */
export async function setUp(
  ctx: ExecutionContext,
  conversation: Conversation,
  sandbox: Sandbox,
  before?: Workspace,
  parked?: ParkedWorkspace,
): Promise<ReadyWorkspace> {
  const seconds = ctx.assignment.setupTimeoutSeconds || SETUP_TIMEOUT_SECONDS;
  const timeout = AbortSignal.timeout(seconds * 1_000);
  const signal = AbortSignal.any([ctx.signal, timeout]);
  let workspace: Workspace = before ? { ...before, sandbox } : workspaceIn(sandbox, []);
  const failed = (reason: string, message: string): SetupFailed => new SetupFailed(reason, message, workspace);
  try {
    const prepared = before
      ? { copies: before.copies, isRestored: true }
      : await prepareWorkspace(ctx, conversation, parked, signal);
    if (!before) workspace = workspaceIn(sandbox, prepared.copies);
    const refusal = await runSetupCommands(ctx, conversation, workspace, signal);
    if (refusal !== undefined) throw failed("setup_command_failed", refusal);
    return { workspace, isRestored: prepared.isRestored };
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (timeout.aborted) throw failed("setup_timeout", `Setting up took longer than ${seconds} s.`);
    if (error instanceof GitFailed) throw failed(error.reason, error.message);
    if (error instanceof SandboxRefusal) throw failed("workspace_setup", error.message);
    if (["ENOSPC", "EDQUOT"].includes(String((error as NodeJS.ErrnoException).code)))
      throw failed("workspace_setup", "The worker's disk is full.");
    throw error;
  }
}

function workspaceIn(sandbox: Sandbox, copies: readonly WorkingCopy[]): Workspace {
  const base = copies.length === 1 && copies[0] ? `${sandbox.workspace}/${copies[0].directory}` : sandbox.workspace;
  return { sandbox, copies, base, cwd: base };
}

/** Runs the setup commands. Returns a message for users if one fails. */
async function runSetupCommands(
  ctx: ExecutionContext,
  conversation: Conversation,
  { sandbox, base }: Workspace,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const command of ctx.assignment.setupCommands) {
    const run = await sandbox.exec(command, {
      cwd: base,
      timeoutMs: (ctx.assignment.setupTimeoutSeconds || SETUP_TIMEOUT_SECONDS) * 1_000,
      signal,
    });
    const exitCode = run.exitCode ?? ENDED_EXIT_CODE;
    conversation.record("setup_command", { command, exit_code: exitCode, output: run.output });
    signal.throwIfAborted();
    if (exitCode !== 0)
      return `The setup command \`${command}\` failed with exit code ${exitCode}:\n${lastLines(run.output)}`;
  }
  return undefined;
}
