import type { JsonObject } from "@bufbuild/protobuf";
import { omitUndefined } from "@millwright/json";
import { isAnObject, objectAt, textAt } from "../../model/event-fields.ts";
import type { HarnessLink } from "../harness-adapter.ts";
import { isPlatformTool } from "../platform-mcp.ts";
import type { AcpDialect } from "./acp-dialect.ts";

/** A tool call, with what has been reported so far. */
type Call = {
  readonly tool: string;
  readonly kind: string;
  isReported: boolean;
  title: string;
  input: JsonObject;
  output: string;
  exitCode: number | undefined;
  paths: readonly string[];
};

const PLAN_TOOL = "plan_update";
/** Update kinds of the protocol that are not shown in a run. */
const IGNORED_TYPES = [
  "user_message_chunk",
  "agent_thought_chunk",
  "available_commands_update",
  "current_mode_update",
  "config_option_update",
  "session_info_update",
  "usage_update",
];

/**
 * Translates the updates of a turn. Chunks are combined into messages, and calls are emitted once their input is known.
 */
export class AcpUpdates {
  readonly #emit: HarnessLink["emit"];
  readonly #toolOf: AcpDialect["toolOf"];
  readonly #calls = new Map<string, Call>();
  #text = "";
  #messageId = "";
  #last = "";
  #plans = 0;
  #isInterrupted = false;

  constructor(emit: HarnessLink["emit"], { toolOf }: Pick<AcpDialect, "toolOf">) {
    this.#emit = emit;
    this.#toolOf = toolOf;
  }

  /** Handles an update and returns whether its kind is known. Unknown kinds are ignored. */
  add(update: JsonObject): boolean {
    switch (update["sessionUpdate"]) {
      case "agent_message_chunk":
        this.#handle(update);
        return true;
      case "tool_call":
      case "tool_call_update":
        this.#speak();
        this.#called(update);
        return true;
      case "plan":
        this.#speak();
        this.#planned(update);
        return true;
      default:
        return IGNORED_TYPES.includes(textAt(update, "sessionUpdate"));
    }
  }

  /** Whether one of the agent's own tools is running. */
  get isInTool(): boolean {
    return [...this.#calls.values()].some(({ isReported, tool }) => isReported && !isPlatformTool(tool));
  }

  /**
   * Marks the turn as interrupted: calls that end from now on were ended by the worker, and later text is not the
   * model's.
   */
  interrupt(): void {
    this.#speak();
    this.#isInterrupted = true;
  }

  /** Ends the turn and returns its last message. */
  end(): string {
    this.#speak();
    const last = this.#last;
    this.#calls.clear();
    this.#last = "";
    this.#isInterrupted = false;
    return last;
  }

  #handle(update: JsonObject): void {
    const id = textAt(update, "messageId");
    if (id !== this.#messageId) this.#speak();
    this.#messageId = id;
    this.#text += textOf(update["content"]);
  }

  #speak(): void {
    const text = this.#text.trim();
    this.#text = "";
    if (text === "" || this.#isInterrupted) return;
    this.#last = text;
    this.#emit({ t: "message", text });
  }

  #called(update: JsonObject): void {
    const id = textAt(update, "toolCallId");
    const title = textAt(update, "title");
    const call = this.#calls.get(id) ?? {
      tool: this.#toolOf({ id, title }) || textAt(update, "kind") || "other",
      kind: textAt(update, "kind"),
      isReported: false,
      title,
      input: {},
      output: "",
      exitCode: undefined,
      paths: [],
    };
    this.#calls.set(id, call);
    this.#learn(call, update);
    const status = textAt(update, "status");
    const hasEnded = status === "completed" || status === "failed";
    if (!call.isReported && (hasEnded || status === "in_progress")) {
      call.isReported = true;
      this.#emit({ t: "tool_start", id, name: call.tool, input: inputOf(call) });
    }
    if (!hasEnded) return;
    this.#calls.delete(id);
    this.#emit({
      t: "tool_end",
      id,
      ok: status === "completed" && !this.#isInterrupted && (call.exitCode ?? 0) === 0,
      output: call.output,
    });
  }

  #learn(call: Call, update: JsonObject): void {
    const { locations, content, rawInput, rawOutput } = update;
    if (textAt(update, "title") !== "") call.title = textAt(update, "title");
    if (isAnObject(rawInput)) call.input = rawInput;
    if (Array.isArray(locations) && locations.length > 0)
      call.paths = locations.filter(isAnObject).map((location) => textAt(location, "path"));
    if (Array.isArray(content) && content.length > 0) call.output = content.filter(isAnObject).map(shown).join("\n");
    const exitCode = /(?:^|\n)Command exited with code: (\d+)$/.exec(call.output)?.[1];
    if (exitCode !== undefined) call.exitCode = Number(exitCode);
    if (isAnObject(rawOutput)) {
      const { exit } = objectAt(rawOutput, "metadata");
      if (typeof exit === "number") call.exitCode = exit;
    }
  }

  /** Emits the agent's plan as a call that is complete immediately. */
  #planned({ entries }: JsonObject): void {
    const steps = Array.isArray(entries)
      ? entries
          .filter(isAnObject)
          .map((entry) => ({ content: textAt(entry, "content"), status: textAt(entry, "status") }))
      : [];
    const id = `plan-${(this.#plans += 1)}`;
    this.#emit({ t: "tool_start", id, name: PLAN_TOOL, input: { entries: steps } });
    this.#emit({ t: "tool_end", id, ok: true, output: "" });
  }
}

/** Returns the text of a content block, or the type of another block. */
function textOf(block: unknown): string {
  if (!isAnObject(block)) return "";
  return block["type"] === "text" ? textAt(block, "text") : `[${textAt(block, "type")}]`;
}

function shown(part: JsonObject): string {
  if (part["type"] === "content") return textOf(part["content"]);
  return part["type"] === "diff" ? `Changed ${textAt(part, "path")}.` : textOf(part);
}

/** Returns the input of a call, or its title and locations if the agent reports only those. */
function inputOf({ input, kind, title, paths }: Call): JsonObject {
  if (Object.keys(input).length > 0) return input;
  if (kind === "execute") return { command: title };
  return omitUndefined({ title, files: paths.length > 0 ? paths.map((path) => ({ path })) : undefined });
}
