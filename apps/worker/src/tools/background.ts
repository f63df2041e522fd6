import { setTimeout as pause } from "node:timers/promises";
import type { JsonObject } from "@bufbuild/protobuf";
import type { ExecValue } from "../sandbox/init/protocol.ts";
import type { BackgroundCommand } from "../sandbox/commands.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { ToolFailure } from "./tool-failure.ts";

const RUNNING_MAX = 16;

type Command = BackgroundCommand & { end?: ExecValue };

/** The background commands of an agent in its sandbox. They end with the sandbox. */
export class BackgroundCommands {
  readonly #commands = new Map<string, Command>();
  readonly #reported = new Set<Command>();
  #count = 0;

  /** Starts a command and returns its id. Throws `ToolFailure` if too many are running. */
  begin(sandbox: Sandbox, command: string, cwd: string): string {
    if ([...this.#commands.values()].filter(({ end }) => !end).length >= RUNNING_MAX)
      throw new ToolFailure(`${RUNNING_MAX} commands are already running in the background; end one with shell_kill.`);
    const begun: Command = sandbox.begin(command, { cwd });
    begun.ended.then(
      (end) => (begun.end = end),
      () => undefined,
    );
    const id = `bg-${(this.#count += 1)}`;
    this.#commands.set(id, begun);
    return id;
  }

  /**
   * Returns a command's output since the last call, after at most `waitMs` or at its end. Throws `ToolFailure` or
   * `SandboxGone`.
   */
  async read(id: string, waitMs: number, signal: AbortSignal): Promise<JsonObject> {
    const command = this.#find(id);
    if (waitMs > 0 && !command.end)
      await Promise.race([
        command.ended.catch(() => undefined),
        pause(waitMs, undefined, { signal, ref: false }).catch(() => undefined),
      ]);
    const { output, truncated, running } = await command.output();
    if (running) return { id, running: true, output, truncated };
    const end = await command.ended;
    const rest = this.#takeRest(command, end);
    return {
      id,
      running: false,
      exit_code: end.exitCode ?? -1,
      output: output + rest,
      truncated: truncated || end.truncated,
    };
  }

  /** Ends a command and returns its output. Throws `ToolFailure` or `SandboxGone`. */
  async stop(id: string, signal: AbortSignal): Promise<JsonObject> {
    const command = this.#find(id);
    if (!command.end) await command.stop();
    await command.ended;
    return this.read(id, 0, signal);
  }

  /** Returns the output after the last request, once. */
  #takeRest(command: Command, end: ExecValue): string {
    if (this.#reported.has(command)) return "";
    this.#reported.add(command);
    return end.output;
  }

  #find(id: string): Command {
    const command = this.#commands.get(id);
    if (!command)
      throw new ToolFailure(`Unknown background command ${id}. Background commands end with their worker or sandbox.`);
    return command;
  }
}
