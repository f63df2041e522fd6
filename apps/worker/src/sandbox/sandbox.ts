import { basename } from "node:path";
import type { SandboxHandle } from "./sandbox-handle.ts";
import { INSIDE_INIT, INSIDE_NODE, relayDirectory } from "./bubblewrap.ts";
import type { Cgroup } from "./cgroup.ts";
import { Channel } from "./channel.ts";
import { commandEnvironment } from "./command-environment.ts";
import { beginCommand, openProgram, type BackgroundCommand, type ExecOptions, type Program } from "./commands.ts";
import { readWholeFile, writeWholeFile } from "./file-transfer.ts";
import { SandboxGone } from "./sandbox-errors.ts";
import type { ExecRequest, ExecValue, ListValue, StatValue } from "./init/protocol.ts";
import { INIT_DIRECTORY, PROGRAM_EXTENSION, TAG } from "./launch.ts";
import { killLaunched, untilEnded, type Launched } from "./launched.ts";
import { oomKillsOfMachine, signal, startOf } from "./processes.ts";
import { HOME, WORKSPACE, type SandboxKind, type SandboxSpec } from "./spec.ts";
import { memoryBreach, Watch, type Breach } from "./watch.ts";

const STOP_GRACE_MS = 3_000;
const KILL_GRACE_MS = 1_000;

const EXEC_TIMEOUT_MS = 120_000;

/**
 * A running sandbox: runs commands and accesses files inside it. All requests reject with `SandboxGone` after it has
 * ended.
 */
export class Sandbox implements SandboxHandle {
  readonly kind: SandboxKind;
  readonly pid: number;
  /**
   * An environment entry of all its processes (none), or of bubblewrap's own processes, whose end also ends the others
   * (bwrap).
   */
  readonly mark: string;
  readonly gone: Promise<void>;
  readonly #spec: SandboxSpec;
  readonly #launched: Launched;
  readonly #channel: Channel;
  readonly #tag: string;
  readonly #cgroup: Cgroup | undefined;
  readonly #watch: Watch;
  readonly #oomKillsBefore = oomKillsOfMachine();
  #breach: Breach | undefined;
  #isKilled = false;

  constructor(
    spec: SandboxSpec,
    launched: Launched,
    { tag, cgroup }: { readonly tag: string; readonly cgroup: Cgroup | undefined },
  ) {
    this.kind = spec.host.kind;
    this.pid = launched.child.pid ?? 0;
    this.mark = `${TAG}=${tag}`;
    this.#spec = spec;
    this.#launched = launched;
    this.#tag = tag;
    this.#cgroup = cgroup;
    this.#channel = new Channel(launched.input, launched.output, () => this.kill());
    this.#watch = new Watch({
      ...{
        limits: spec.limits,
        cgroup,
        directories: spec.mounts.filter(({ writable }) => writable).map(({ source }) => source),
      },
      root: () => launched.inside()?.pid ?? launched.child.pid,
      onBreach: (breach) => this.#onBreach(breach),
    });
    this.gone = this.#untilGone();
  }

  /** The exceeded limit that ended the sandbox. */
  get breach(): Breach | undefined {
    return this.#breach;
  }

  get limits(): SandboxSpec["limits"] {
    return this.#spec.limits;
  }

  /** The path of a sandbox directory, as its commands see it. */
  get workspace(): string {
    return this.inside(WORKSPACE);
  }
  get home(): string {
    return this.inside(HOME);
  }
  /** A directory for temporary files, which is removed with the sandbox. */
  get scratch(): string {
    return this.kind === "bwrap" ? "/tmp" : this.#spec.dir;
  }
  /** Returns an argument list that runs one of the platform's own programs inside, such as `grep`. */
  ownProgram(name: string): string[] {
    const [node, directory] = this.kind === "bwrap" ? [INSIDE_NODE, INSIDE_INIT] : [process.execPath, INIT_DIRECTORY];
    return [node, "--no-warnings", `${directory}/${name}${PROGRAM_EXTENSION}`];
  }
  inside(target: string): string {
    return this.kind === "bwrap"
      ? target
      : (this.#spec.mounts.find((mount) => mount.target === target)?.source ?? target);
  }

  /** Sends the environment. Resolves when `sandbox-init` has responded. */
  async initialize(): Promise<void> {
    const relays =
      this.kind === "none"
        ? []
        : (this.#spec.relays ?? []).map(({ port, socket }) => ({
            port,
            socket: `${relayDirectory(port)}/${basename(socket)}`,
          }));
    await this.#channel.request({
      op: "hello",
      relays,
      secrets: this.#spec.secrets ?? [],
      env: { ...commandEnvironment(this.kind, this), ...this.#spec.env, [TAG]: this.#tag },
    }).response;
    this.#watch.start();
  }

  /** Starts a shell command in the background. It may run until the sandbox ends. */
  begin(command: string, { cwd = this.workspace }: Pick<ExecOptions, "cwd"> = {}): BackgroundCommand {
    return beginCommand(this.#channel, { command, cwd });
  }

  /** Starts a program with piped input and output, concurrently with other commands. It ends with the sandbox. */
  open(argv: readonly string[], { cwd = this.workspace, env = {} }: Pick<ExecOptions, "cwd" | "env"> = {}): Program {
    return openProgram(this.#channel, { argv, cwd, env });
  }

  /**
   * Runs a shell command (string) or a program (list) to its end. Any exit code is a result. Throws `SandboxGone`, also
   * if the command exceeded a limit.
   */
  async exec(command: string | readonly string[], options: ExecOptions = {}): Promise<ExecValue> {
    options.signal?.throwIfAborted();
    const run: ExecRequest["run"] = typeof command === "string" ? { command } : { argv: [...command] };
    const { id, response } = this.#channel.request({
      op: "exec",
      run,
      cwd: options.cwd ?? this.workspace,
      timeoutMs: options.timeoutMs ?? EXEC_TIMEOUT_MS,
      env: options.env,
    });
    const stop = () => void this.#channel.request({ op: "stop", exec: id }).response.catch(() => undefined);
    options.signal?.addEventListener("abort", stop, { once: true });
    const value = await response.finally(() => options.signal?.removeEventListener("abort", stop));
    const breach = this.#watch.check();
    if (breach) throw new SandboxGone(breach.message);
    return value;
  }

  /** Reads a whole regular file inside `root`. Throws `SandboxRefusal` or `FileTooLarge`. */
  readFile(root: string, path: string, bytesMax: number): Promise<Buffer> {
    return readWholeFile(this.#channel, { root, path, bytesMax });
  }

  /** Writes a whole file inside `root`. Returns whether it is new. Throws `SandboxRefusal`. */
  writeFile(root: string, path: string, content: Uint8Array): Promise<{ created: boolean }> {
    return writeWholeFile(this.#channel, { root, path, content });
  }

  stat(root: string, path: string): Promise<StatValue> {
    return this.#channel.request({ op: "stat", root, path }).response;
  }

  list(root: string, path: string, pattern: string, depth: number): Promise<ListValue> {
    return this.#channel.request({ op: "list", root, path, pattern, depth }).response;
  }

  terminate(): void {
    this.#channel.request({ op: "terminate" }).response.catch(() => undefined);
  }

  /**
   * Kills the sandbox. In a bubblewrap sandbox, everything ends with the first process. A sandbox of kind `none` is
   * ended by `sandbox-init` and, after `KILL_GRACE_MS`, by force.
   */
  kill(): void {
    this.#isKilled = true;
    const inside = this.#launched.inside();
    if (inside && startOf(inside.pid) === inside.start) signal(inside.pid, "SIGKILL");
    this.#channel.end();
    setTimeout(
      () => killLaunched(this.#launched, this.kind),
      this.kind === "bwrap" && !inside ? 0 : KILL_GRACE_MS,
    ).unref();
  }

  /** Ends the sandbox gracefully, and by force after `STOP_GRACE_MS`. Resolves when nothing of it remains. */
  async stop(): Promise<void> {
    this.#channel.end();
    const force = setTimeout(() => this.kill(), STOP_GRACE_MS);
    await this.gone;
    clearTimeout(force);
  }

  #onBreach(breach: Breach): void {
    this.#breach ??= breach;
    this.#channel.close(new SandboxGone(breach.message));
    this.kill();
  }

  async #untilGone(): Promise<void> {
    const ending = await untilEnded(this.#launched, this.kind === "none" ? this.mark : undefined);
    const breach = this.#watch.check() ?? this.#outOfMemory(ending);
    this.#watch.stop();
    if (breach) this.#breach ??= breach;
    this.#channel.close(
      new SandboxGone(
        breach?.message ??
          `The sandbox has ended (${[ending, this.#launched.errorOutput()].filter(Boolean).join(": ")}).`,
      ),
    );
    await this.#cgroup?.end();
  }

  /**
   * Returns a memory breach if the kernel killed the sandbox. Without a cgroup for the sandbox, the kernel may kill any
   * of its processes when the machine's memory is used up.
   */
  #outOfMemory(ending: string): Breach | undefined {
    const isEndedByKernel =
      !this.#isKilled &&
      (ending === "SIGKILL" || ending === "exit code 137") &&
      oomKillsOfMachine() > this.#oomKillsBefore;
    return isEndedByKernel ? memoryBreach(this.#spec.limits, "watch") : undefined;
  }
}
