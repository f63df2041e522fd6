import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import type { SandboxHandle } from "./sandbox-handle.ts";
import { SandboxStartFailed } from "./sandbox-errors.ts";
import { removeTree } from "./remove-tree.ts";
import type { Cgroup } from "./cgroup.ts";
import { claimWorkspace, type WorkspaceClaim } from "./claim-workspace.ts";
import { commandPath } from "./command-environment.ts";
import { HeadTail } from "./init/head-tail.ts";
import { launchBubblewrap, launchPlain, TAG } from "./launch.ts";
import { killLaunched, untilEnded, type Launched } from "./launched.ts";
import { limitsFor, type Limits } from "./limits.ts";
import { giveTo } from "./outside-user.ts";
import { HOME, INBOX, OUTBOX, WORKSPACE, type Mount, type SandboxHost, type SandboxSpec } from "./spec.ts";
import { hasClosedUserns } from "./start-sandbox.ts";
import { Watch } from "./watch.ts";

/** The maximum size of a script's output: the first and the last half of it. */
const OUTPUT_BYTES_MAX = 2 * 1024 * 1024;

/**
 * How long reading the pipe may take after the script's end. A background process of kind `none` may keep it open
 * longer.
 */
const DRAIN_MS = 1_000;

async function drained(stream: Readable): Promise<void> {
  const tooLong = setTimeout(() => stream.destroy(), DRAIN_MS);
  if (!stream.closed) await new Promise<void>((resolve) => stream.once("close", resolve));
  clearTimeout(tooLong);
}

export type PlatformShellOptions = {
  readonly host: SandboxHost;
  /** The execution's directory. Scripts operate on its `workspace`. */
  readonly dir: string;
  /** A directory of the worker with files for the scripts; read-only inside. */
  readonly inbox?: string;
  readonly ownSandbox: (sandbox: SandboxHandle) => void;
  /** Kills the running script, which then rejects with the abort reason. */
  readonly signal: AbortSignal;
  /** Default: the host's limits of a run that specifies none. */
  readonly limits?: Limits;
};

export type ScriptOptions = { readonly env?: Readonly<Record<string, string>>; readonly timeoutMs: number };
/**
 * `exitCode` is null if a signal ended the script. `output` is its standard output and, if it failed, the end of its
 * standard error.
 */
export type ScriptResult = { readonly exitCode: number | null; readonly timedOut: boolean; readonly output: string };

/**
 * Runs the platform's own scripts on the workspace of an execution, such as git in the agent's repositories. Each
 * script runs in its own sandbox, without network, home, secrets and the agent's processes. When it ends, everything
 * that it started has ended, including what the agent's files made it start. Malicious repository content therefore
 * cannot outlive the script, and the outbox cannot change while the worker reads it.
 */
export class PlatformShell {
  /**
   * The outbox on the host. Read it only between scripts, and do not trust it: the agent's repository may have
   * influenced its content.
   */
  readonly outbox: string;
  readonly #options: PlatformShellOptions;
  readonly #dir: string;

  private constructor(options: PlatformShellOptions, dir: string) {
    this.#options = options;
    this.#dir = dir;
    this.outbox = join(dir, "outbox");
  }

  /** Calls `use` with a shell and removes its outbox afterwards. Throws the errors of `use` and of the file system. */
  static async use<T>(options: PlatformShellOptions, use: (shell: PlatformShell) => Promise<T>): Promise<T> {
    const shell = new PlatformShell(options, await mkdtemp(join(options.dir, "shell-")));
    try {
      return await use(shell);
    } finally {
      await removeTree(shell.#dir).catch(() => undefined); // it is removed with the execution's directory
    }
  }

  /** The paths of the directories as the scripts see them. */
  get paths(): { readonly workspace: string; readonly inbox: string; readonly outbox: string } {
    const { host, dir, inbox = "" } = this.#options;
    if (host.kind === "bwrap") return { workspace: WORKSPACE, inbox: INBOX, outbox: OUTBOX };
    return { workspace: join(dir, "workspace"), inbox, outbox: this.outbox };
  }

  /**
   * Runs a script to its end, with `$WORKSPACE`, `$INBOX` and `$OUTBOX` set. Any exit code is a result. Throws the
   * reason of `signal` and start failures.
   */
  async run(script: string, { env = {}, timeoutMs }: ScriptOptions): Promise<ScriptResult> {
    const { host, dir, ownSandbox, signal } = this.#options;
    signal.throwIfAborted();
    const claim = await claimWorkspace(host, dir);
    const tag = randomUUID();
    try {
      signal.throwIfAborted();
      const { workspace, inbox, outbox } = this.paths;
      const complete = {
        PATH: commandPath(host.kind),
        HOME: "/nonexistent",
        LANG: "C.UTF-8",
        ...env,
        WORKSPACE: workspace,
        INBOX: inbox,
        OUTBOX: outbox,
      };
      const { launched, cgroup } = await this.#launch(claim, { script, env: complete }, tag);
      const output = new HeadTail(OUTPUT_BYTES_MAX);
      launched.output.on("data", (chunk: Buffer) => output.push(chunk));
      launched.input.on("error", () => undefined).end();
      const kill = (): void => killLaunched(launched, host.kind);
      const mark = `${TAG}=${tag}`;
      const gone = untilEnded(launched, host.kind === "none" ? mark : undefined).then(() => cgroup?.end());
      const watch = this.#watch(launched, cgroup, kill);
      ownSandbox({ pid: launched.child.pid ?? 0, mark, terminate: kill, kill, gone });
      let timedOut = false;
      const timer = setTimeout(() => {
        timedOut = true;
        kill();
      }, timeoutMs);
      signal.addEventListener("abort", kill);
      if (signal.aborted) kill();
      watch.start();
      await gone;
      clearTimeout(timer);
      const breach = watch.check();
      watch.stop();
      signal.removeEventListener("abort", kill);
      signal.throwIfAborted();
      await drained(launched.output);
      const { exitCode } = launched.child;
      if (host.kind === "bwrap" && exitCode !== 0 && !launched.inside())
        throw new SandboxStartFailed("A sandbox of the platform did not start.", new Error(launched.errorOutput()));
      const errorOutput = exitCode === 0 ? "" : (breach?.message ?? launched.errorOutput());
      return {
        exitCode: breach || timedOut ? null : exitCode, // bubblewrap can report its program's end before its own
        timedOut,
        output: [output.text().text, errorOutput].filter(Boolean).join("\n"),
      };
    } finally {
      claim.release();
    }
  }

  /**
   * Returns a watch of the script's limits. The script's files count together with the agent's, because git may run
   * filters of the agent's repository.
   */
  #watch(launched: Launched, cgroup: Cgroup | undefined, onBreach: () => void): Watch {
    const { dir } = this.#options;
    const directories = [join(dir, "workspace"), join(dir, "home"), this.outbox];
    return new Watch({
      limits: this.#limits,
      cgroup,
      directories,
      root: () => launched.inside()?.pid ?? launched.child.pid,
      onBreach,
    });
  }

  get #limits(): Limits {
    return this.#options.limits ?? limitsFor(this.#options.host.limits);
  }

  async #launch(
    { mounts, uid }: WorkspaceClaim,
    entry: { script: string; env: Record<string, string> },
    tag: string,
  ): Promise<{ launched: Launched; cgroup: Cgroup | undefined }> {
    const { host, inbox } = this.#options;
    const spec: SandboxSpec = {
      host,
      dir: join(this.#dir, "sandbox"),
      mounts: [...mounts.filter(({ target }) => target !== HOME), ...this.#exchange(inbox)],
      env: {},
      limits: this.#limits,
      uid,
    };
    for (const directory of [spec.dir, this.outbox]) await mkdir(directory, { recursive: true, mode: 0o700 });
    if (uid !== undefined) await giveTo(uid, this.outbox);
    const cgroup = host.cgroups?.create(spec.limits);
    try {
      return {
        cgroup,
        launched:
          host.kind === "bwrap"
            ? await launchBubblewrap(spec, cgroup, tag, hasClosedUserns(), entry)
            : await launchPlain(spec, cgroup, tag, entry),
      };
    } catch (error) {
      await cgroup?.end();
      throw error;
    }
  }

  #exchange(inbox: string | undefined): Mount[] {
    const outbox = { source: this.outbox, target: OUTBOX, writable: true };
    return inbox === undefined ? [outbox] : [{ source: inbox, target: INBOX, writable: false }, outbox];
  }
}
