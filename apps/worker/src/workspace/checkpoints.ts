import type { ExecutionContext, LastSave } from "../context/execution-context.ts";
import { isPristine, packSnapshot } from "../git/take-snapshot.ts";
import { hasFilesBeside, workspaceState, type WorkspaceState } from "../git/workspace-state.ts";
import { SandboxGone } from "../sandbox/sandbox-errors.ts";
import { limitsFor } from "../sandbox/limits.ts";
import { PlatformShell } from "../sandbox/platform-shell.ts";
import { hostOf } from "../sandbox/spec.ts";
import type { Workspace } from "../tools/tool.ts";
import type { Conversation } from "../conversation/conversation.ts";

/** The time budget for saving between steps: a fixed amount plus a share of the agent's working time. */
const FREE_MS = 5_000;
const SHARE = 0.2;

/** The checkpoint operations that steps use. */
export type Saving = Pick<Checkpoints, "note" | "begin" | "save">;

/** Used for workspaces that do not outlive their execution. */
export const SAVES_NOTHING: Saving = { note: () => {}, begin: () => {}, save: () => Promise.resolve() };

export type CheckpointsDeps = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly workspace: Workspace;
  /** Whether the workspace was restored from a snapshot, so that "as cloned" is not its initial state. */
  readonly isRestored: boolean;
};

/**
 * Saves the workspace between steps, so that another worker can continue. It saves after steps that may have changed
 * the workspace, if they did and if the time budget allows. A `checkpoint` event states that everything before it is
 * saved. If saving fails, the run continues; only a lost worker would then lose files.
 */
export class Checkpoints {
  readonly #deps: CheckpointsDeps;
  readonly #beganMs: number;
  #spentMs = 0;
  #need: "none" | "if_cheap" | "always" = "none";
  #running: Promise<void> | undefined;
  #saved: { readonly fingerprint: string; readonly key: string } | undefined;
  #hasWarned = false;
  #last: { readonly fingerprint: string; readonly snapshotKey: string } | undefined;

  constructor(deps: CheckpointsDeps) {
    this.#deps = deps;
    this.#beganMs = deps.ctx.clock.monotonicMs();
  }

  /**
   * Marks that a step may have changed the workspace. `always`: its effects are used elsewhere, so the workspace is
   * saved regardless of the time budget.
   */
  note(need: "if_cheap" | "always"): void {
    if (this.#need !== "always") this.#need = need;
  }

  /** Starts saving if there are changes. The workspace should be idle. */
  begin(): void {
    if (this.#running || this.#need === "none" || !this.#isAffordable()) return;
    this.#running = this.#measured(() => this.#save()).finally(() => (this.#running = undefined));
  }

  /** Resolves when marked changes are saved or cannot be saved. Never rejects. */
  async save(): Promise<void> {
    this.begin();
    await this.#running;
  }

  /**
   * Stops the sandbox and saves the final workspace. `means`: those of a stopped execution; absent: those of its
   * context. Returns the key of its snapshot, or undefined if there is nothing to save or saving failed (which the run's
   * events state). Throws the abort reason of `means`.
   */
  async last(means: LastSave = this.#deps.ctx): Promise<string | undefined> {
    await this.#running;
    this.#last = undefined; // an earlier call may have been aborted
    const { ctx, workspace, isRestored } = this.#deps;
    // The sandbox is stopped first, so that no process of the agent can change the workspace or interfere with the
    // platform's git.
    await workspace.sandbox.stop();
    let key: string | undefined;
    await this.#attempt(means, async () => {
      const wasSaved = isRestored || (this.#saved?.key ?? "") !== "";
      if (!wasSaved && workspace.copies.length === 0 && !(await hasFilesBeside(ctx.dir)))
        return this.#end("", undefined);
      await this.#withState(means, async (state, pack) => {
        const isSaved = state.fingerprint === this.#saved?.fingerprint;
        if (isSaved) key = this.#saved?.key;
        else if (wasSaved || !isPristine(state, workspace.copies)) key = await pack();
        this.#end(state.fingerprint, key);
      });
    });
    means.signal.throwIfAborted();
    return key === "" ? undefined : key;
  }

  /** The last saved workspace and its snapshot key ("": as cloned); absent if it could not be saved. */
  get end(): { readonly fingerprint: string; readonly snapshotKey: string } | undefined {
    return this.#last;
  }

  #end(fingerprint: string, key: string | undefined): void {
    this.#last = { fingerprint, snapshotKey: key ?? "" };
  }

  #isAffordable(): boolean {
    return (
      this.#need === "always" || this.#spentMs <= FREE_MS + SHARE * (this.#deps.ctx.clock.monotonicMs() - this.#beganMs)
    );
  }

  async #measured(act: () => Promise<void>): Promise<void> {
    const { clock } = this.#deps.ctx;
    const began = clock.monotonicMs();
    const need = this.#need;
    this.#need = "none";
    if (!(await this.#attempt(this.#deps.ctx, act))) this.#need = need;
    this.#spentMs += clock.monotonicMs() - began;
  }

  async #save(): Promise<void> {
    const { ctx, conversation, workspace, isRestored } = this.#deps;
    await this.#withState(ctx, async (state, pack) => {
      if (state.fingerprint === this.#saved?.fingerprint) return;
      const isAsCloned = !isRestored && isPristine(state, workspace.copies);
      this.#saved = { fingerprint: state.fingerprint, key: isAsCloned ? "" : await pack() };
    });
    conversation.record("checkpoint", { snapshot_key: this.#saved?.key ?? "" });
    await ctx.flushed(); // the event must be stored before the platform may delete an older snapshot
  }

  /** Reads the state of the workspace. `pack` uploads a snapshot of it and returns its key. */
  #withState(
    means: LastSave,
    use: (state: WorkspaceState, pack: () => Promise<string>) => Promise<void>,
  ): Promise<void> {
    const { ctx, workspace } = this.#deps;
    return PlatformShell.use(
      {
        host: hostOf(ctx.sandbox),
        limits: limitsFor(hostOf(ctx.sandbox).limits, ctx.assignment.instanceShape),
        dir: ctx.dir,
        signal: means.signal,
        ownSandbox: (sandbox) => means.ownSandbox(sandbox),
      },
      async (shell) => {
        const state = await workspaceState(shell, workspace.copies);
        await use(
          state,
          async () =>
            (await means.platform.putSnapshot(await packSnapshot(shell, workspace.copies, state))).snapshotKey,
        );
      },
    );
  }

  async #attempt({ signal }: Pick<LastSave, "signal">, act: () => Promise<void>): Promise<boolean> {
    const { ctx, conversation } = this.#deps;
    try {
      await act();
      return true;
    } catch (error) {
      // the code that uses the sandbox handles the error
      if (signal.aborted || error instanceof SandboxGone) return false;
      ctx.log.warn({ operation: "save the workspace", error }, "workspace could not be saved; continuing");
      if (!this.#hasWarned)
        conversation.record("warning", {
          text: `The workspace could not be saved: ${error instanceof Error ? error.message : "unknown error"}`,
        });
      this.#hasWarned = true;
      return false;
    }
  }
}
