import type { components } from "../../gen/api.ts";

export type RunEvent = components["schemas"]["RunEvent"];
type Json = Readonly<Record<string, unknown>>;

/** A step of the run as the page shows it. `seq` is that of its first event and identifies it in links. */
export type TimelineItem =
  | {
      readonly kind: "message";
      readonly seq: number;
      readonly at: string;
      readonly role: string;
      readonly text: string;
      /** Step of the model. Absent for messages of people and of the platform. */
      readonly stepId?: string;
    }
  | {
      readonly kind: "tool";
      readonly seq: number;
      readonly at: string;
      readonly name: string;
      readonly category: string;
      /** Input as the model sent it; for edits, with the texts. */
      readonly input: Json;
      readonly state: string;
      readonly output: Json;
      /** Output of a command in progress. */
      readonly progress: string;
      readonly durationMs: number | undefined;
    }
  | { readonly kind: "event"; readonly seq: number; readonly at: string; readonly event: RunEvent };

/** Text that the model is generating. */
export type LiveText = { readonly stepId: string; readonly text: string };
export type TextDelta = { readonly step_id: string; readonly offset: number; readonly text: string };

const PROGRESS_CHARACTERS_MAX = 100_000;
/** Start of the ids of the steps by which the model `scripted` states that it is no AI and has no script. */
const NO_SCRIPT_STEP = "no-script-";

/**
 * Builds the steps of a run from its events, one event at a time, so that 50,000 events cost one pass. A changed step
 * is a new object.
 */
export class Timeline {
  readonly items: TimelineItem[] = [];
  live: LiveText | undefined;
  #lastSeq = 0;
  readonly #toolIndexes = new Map<string, number>();
  readonly #modelInputs = new Map<string, Json>();

  /** Sequence number of the last event. */
  get lastSeq(): number {
    return this.#lastSeq;
  }

  /** Whether the newest message is that of a run without an AI model and without a script. */
  get isWithoutModel(): boolean {
    const last = this.items.findLast((item) => item.kind === "message");
    return last?.kind === "message" && last.stepId?.startsWith(NO_SCRIPT_STEP) === true;
  }

  /** Adds the next event. An event that was added before is ignored. */
  add(event: RunEvent): void {
    if (event.seq <= this.#lastSeq) return;
    this.#lastSeq = event.seq;
    const { payload } = event;
    switch (event.kind) {
      case "message":
        return this.#addMessage(event, textOf(payload["role"]) || "system");
      case "model_step":
        for (const call of arrayOf(payload["tool_calls"]))
          this.#modelInputs.set(textOf(call["call_id"]), objectOf(call["input"]));
        if (this.live?.stepId === payload["step_id"]) this.live = undefined;
        return textOf(payload["text"]) === "" ? undefined : this.#addMessage(event, "assistant");
      case "tool_start":
        return this.#startTool(event);
      case "command_output":
        return this.#changeTool(event, (tool) => ({
          ...tool,
          progress: (tool.progress + textOf(payload["text"])).slice(-PROGRESS_CHARACTERS_MAX),
        }));
      case "tool_end":
        if (!this.#toolIndexes.has(textOf(payload["call_id"]))) this.#startTool(event);
        return this.#changeTool(event, (tool) => ({
          ...tool,
          state: textOf(payload["state"]) || "failed",
          output: objectOf(payload["output"]),
          durationMs: typeof payload["duration_ms"] === "number" ? payload["duration_ms"] : undefined,
        }));
      default:
        this.items.push({ kind: "event", seq: event.seq, at: event.occurred_at, event });
    }
  }

  /** Adds generated text. Deltas can be lost; a gap shows what has arrived. */
  addText({ step_id: stepId, offset, text }: TextDelta): void {
    const before = this.live?.stepId === stepId ? this.live.text : "";
    if (offset + text.length <= before.length) return;
    this.live = { stepId, text: before.slice(0, offset) + text };
  }

  #addMessage({ seq, occurred_at: at, payload }: RunEvent, role: string): void {
    const text = textOf(payload["text"]);
    const last = this.items.findLast((item) => item.kind !== "event");
    // third-party agents send a response twice: as a model step, and as a message
    if (role === "assistant" && last?.kind === "message" && last.role === role && last.text === text) return;
    const stepId = textOf(payload["step_id"]);
    this.items.push({ kind: "message", seq, at, role, text, ...(stepId !== "" && { stepId }) });
  }

  #startTool({ seq, occurred_at: at, payload }: RunEvent): void {
    const callId = textOf(payload["call_id"]);
    this.#toolIndexes.set(callId, this.items.length);
    this.items.push({
      kind: "tool",
      seq,
      at,
      name: textOf(payload["name"]),
      category: textOf(payload["category"]),
      input: { ...this.#modelInputs.get(callId), ...objectOf(payload["input"]) },
      state: "running",
      output: {},
      progress: "",
      durationMs: undefined,
    });
  }

  #changeTool({ payload }: RunEvent, change: (tool: TimelineItem & { kind: "tool" }) => TimelineItem): void {
    const index = this.#toolIndexes.get(textOf(payload["call_id"]));
    const tool = index === undefined ? undefined : this.items[index];
    if (tool?.kind === "tool") this.items[index!] = change(tool);
  }
}

export const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
export const objectOf = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
export const arrayOf = (value: unknown): Json[] => (Array.isArray(value) ? value.map(objectOf) : []);
