import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { JsonObject, JsonValue } from "../../runs/domain/run.ts";
import { terminalText } from "./terminal-text.ts";

/** A command that an agent or the setup of its environment ran, with its output as shown by a terminal. */
export type TerminalBlock = {
  readonly id: string;
  readonly run_id: string;
  readonly execution_id?: number;
  /** setup_command: run by the environment's setup · command: run by the agent. */
  readonly kind: "setup_command" | "command";
  readonly command: string;
  readonly cwd?: string;
  readonly output: string;
  /** null: it has not ended, or did not end by itself. */
  readonly exit_code: number | null;
  /** interrupted: its worker was lost before it ended, so its end is unknown. */
  readonly state: "running" | "completed" | "failed" | "denied" | "interrupted";
  readonly started_at: string;
  readonly completed_at?: string;
  /** True if the beginning of the output is incomplete. */
  readonly truncated?: true;
};

/** Media type and version of the file, by which readers recognise its format. */
export const BLOCKS_TYPE = "application/json";
export const BLOCKS_VERSION = 1;

type Draft = { -readonly [K in keyof TerminalBlock]: TerminalBlock[K] };

/** Collects the commands of one run, in the order in which they started. Events of superseded attempts are left out. */
export class TerminalBlocks {
  readonly #blocks: Draft[] = [];
  readonly #open = new Map<string, Draft>();
  /** Background commands, by the id that the agent uses to read their output. */
  readonly #background = new Map<string, Draft>();

  add(event: RunEvent): void {
    if (event.isSuperseded) return;
    const { payload } = event;
    if (event.kind === "setup_command") return this.#setUp(event);
    if (event.kind === "worker_lost" || event.kind === "worker_stopped" || event.kind === "attempt_failed")
      return this.#interruptRunning();
    if (event.kind !== "tool_start" && event.kind !== "tool_end") return;
    if (payload["name"] === "run_command") return event.kind === "tool_start" ? this.#begin(event) : this.#end(event);
    if (event.kind === "tool_end" && (payload["name"] === "read_command_output" || payload["name"] === "stop_command"))
      this.#appendOutput(event);
  }

  finish(): readonly TerminalBlock[] {
    return this.#blocks;
  }

  #setUp(event: RunEvent): void {
    const { command, exit_code: exitCode, output } = event.payload;
    const at = event.occurredAt.toISOString();
    const state = exitCode === 0 ? "completed" : "failed";
    this.#blocks.push({
      ...origin(event, event.uid),
      kind: "setup_command",
      command: text(command),
      output: terminalText(text(output)),
      exit_code: number(exitCode),
      state,
      started_at: at,
      completed_at: at,
    });
  }

  #begin(event: RunEvent): void {
    const id = text(event.payload["call_id"]) || event.uid;
    const { command } = object(event.payload["input"]);
    const block: Draft = {
      ...origin(event, id),
      kind: "command",
      command: text(command),
      output: "",
      exit_code: null,
      state: "running",
      started_at: event.occurredAt.toISOString(),
    };
    this.#blocks.push(block);
    this.#open.set(id, block);
  }

  #end(event: RunEvent): void {
    const id = text(event.payload["call_id"]);
    const block = this.#open.get(id);
    if (!block) return;
    this.#open.delete(id);
    const output = object(event.payload["output"]);
    if (output["running"] === true) return void this.#background.set(text(output["id"]), block);
    Object.assign(block, {
      output: terminalText(text(output["output"]) || text(output["error"])),
      ...ended(event, output),
    });
    if (text(output["cwd"]) !== "") block.cwd = text(output["cwd"]);
  }

  /** Appends the output that a background command wrote since it was last read. */
  #appendOutput(event: RunEvent): void {
    const output = object(event.payload["output"]);
    const block = this.#background.get(text(output["id"]));
    if (!block) return;
    block.output += terminalText(text(output["output"]));
    if (output["truncated"] === true) block.truncated = true;
    if (output["running"] === false) Object.assign(block, ended(event, output));
  }

  #interruptRunning(): void {
    for (const block of [...this.#open.values(), ...this.#background.values()])
      if (block.state === "running") block.state = "interrupted";
    this.#background.clear();
  }
}

const origin = ({ runUid, executionId }: RunEvent, id: string) => ({
  id,
  run_id: runUid,
  execution_id: executionId,
});

function ended(
  { occurredAt, payload }: RunEvent,
  output: JsonObject,
): Pick<Draft, "exit_code" | "state" | "completed_at" | "truncated"> {
  const exitCode = number(output["exit_code"]);
  const state = STATES.find((known) => known === payload["state"]) ?? "failed";
  return {
    exit_code: exitCode,
    state: state === "completed" && exitCode !== 0 ? "failed" : state,
    completed_at: occurredAt.toISOString(),
    ...(output["truncated"] === true || payload["truncated"] === true ? { truncated: true as const } : {}),
  };
}

const STATES = ["completed", "failed", "denied", "interrupted"] as const;
const text = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "");
const number = (value: JsonValue | undefined): number | null => (typeof value === "number" ? value : null);
const object = (value: JsonValue | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
