import type { RunEvent } from "../../runs/domain/run-events.ts";
import type { JsonObject, JsonValue } from "../../runs/domain/run.ts";

/** A part of a message. Its type is text, action, action_result or event. */
export type Block = JsonObject & { readonly type: string };
export type Message = {
  readonly role: "user" | "assistant" | "tool" | "system";
  readonly content: Block[];
  readonly timestamp: Date;
  readonly messageIds: string[];
};

/** A turn, with the steps of the child runs it started. */
export type Step = {
  readonly id: string;
  readonly messages: Message[];
  readonly steps: Step[];
  readonly description?: string;
  readonly summary?: string;
};

/** A child run, with its own steps already built. */
export type ChildRun = {
  readonly runUid: string;
  readonly title: string;
  readonly summary?: string;
  readonly steps: readonly Step[];
};

/** A text that the agent may send twice: once as a model step, once as a message. */
type SentText = { readonly text: string };

/**
 * Returns the steps of a run: one per user message, with all events until the next one. Events of a superseded attempt
 * are left out; the loss of its worker is included as an event. A child run is nested in the step whose action created
 * it, else in the last step. A run whose agent has received no message has no steps.
 */
export function stepsOf(events: readonly RunEvent[], children: readonly ChildRun[]): Step[] {
  const builder = new ConversationBuilder(new Map(children.map((child) => [child.runUid, child])));
  for (const event of events) if (!event.isSuperseded) builder.add(event);
  return builder.finish();
}

class ConversationBuilder {
  readonly #steps: Step[] = [];
  readonly #unplaced: Map<string, ChildRun>;
  /** True if further blocks of the same role are appended to the last message. */
  #isOpen = false;
  #lastText: SentText | undefined;
  /** Messages before the first user message, such as the loss of the first worker. */
  readonly #before: Message[] = [];

  constructor(children: Map<string, ChildRun>) {
    this.#unplaced = children;
  }

  add(event: RunEvent): void {
    const { payload } = event;
    switch (event.kind) {
      case "message":
        return this.#message(event);
      case "model_step":
        this.#lastText = { text: textOf(payload["text"]) };
        return this.#appendText(event, this.#lastText.text);
      case "tool_start":
        return this.#append(event, "assistant", {
          type: "action",
          id: textOf(payload["call_id"]),
          ...action(payload),
          input: objectOf(payload["input"]),
        });
      case "tool_end":
        this.#place(objectOf(payload["output"])["run_id"]);
        return this.#append(event, "tool", {
          ...{ type: "action_result", action_id: textOf(payload["call_id"]), ...action(payload) },
          ...{ state: resultState(payload["state"]), output: objectOf(payload["output"]) },
        });
      case "conversation_summarized":
        return this.#append(event, "system", {
          type: "event",
          name: event.kind,
          data: { summary: textOf(payload["summary"]) },
        });
      case "mcp_server_failed":
      case "agent_resumed":
        return this.#append(event, "system", {
          type: "event",
          name: event.kind,
          data: { text: textOf(payload["text"]) },
        });
      case "worker_lost":
      case "worker_stopped":
      case "attempt_failed":
      case "dispatch_failed":
      case "stalled":
      case "followup_undelivered":
        return this.#append(event, "system", { type: "event", name: event.kind, data: payload });
      default:
        return;
    }
  }

  finish(): Step[] {
    const last = this.#steps.at(-1);
    if (!last) return [];
    for (const child of this.#unplaced.values()) last.steps.push(nested(child));
    return this.#steps;
  }

  #message(event: RunEvent): void {
    const text = textOf(event.payload["text"]);
    const role = event.payload["role"];
    if (role === "assistant") {
      if (this.#lastText?.text !== text) this.#appendText(event, text);
      this.#lastText = undefined;
      return;
    }
    if (role === "user") {
      const id = textOf(event.payload["message_uid"]) || event.uid;
      this.#steps.push({ id, messages: this.#before.splice(0), steps: [] });
      this.#isOpen = false;
    }
    this.#append(event, role === "user" ? "user" : "system", { type: "text", text });
  }

  #appendText(event: RunEvent, text: string): void {
    this.#isOpen = false; // each model answer is a separate message; the actions it requests are appended to it
    if (text !== "") this.#append(event, "assistant", { type: "text", text });
  }

  #append(event: RunEvent, role: Message["role"], block: Block): void {
    const messages = this.#steps.at(-1)?.messages ?? this.#before;
    const last = messages.at(-1);
    const withId = { ...block, message_id: event.uid };
    if (this.#isOpen && last?.role === role) {
      last.content.push(withId);
      last.messageIds.push(event.uid);
    } else messages.push({ role, content: [withId], timestamp: event.occurredAt, messageIds: [event.uid] });
    this.#isOpen = true;
  }

  #place(runUid: JsonValue | undefined): void {
    const child = typeof runUid === "string" ? this.#unplaced.get(runUid) : undefined;
    const step = this.#steps.at(-1);
    if (!child || !step) return;
    this.#unplaced.delete(child.runUid);
    step.steps.push(nested(child));
  }
}

const nested = (child: ChildRun): Step => ({
  id: child.runUid,
  messages: child.steps.flatMap((step) => step.messages),
  steps: child.steps.flatMap((step) => step.steps),
  description: child.title,
  ...(child.summary === undefined ? {} : { summary: child.summary }),
});

/** Returns the times of the earliest and the latest message of a step and its nested steps. */
export function spanOf(step: Step): { readonly from: Date; readonly to: Date } | undefined {
  const below = step.steps.map(spanOf).flatMap((span) => (span ? [span.from, span.to] : []));
  const times = [...step.messages.map((message) => message.timestamp), ...below].sort(
    (a, b) => a.getTime() - b.getTime(),
  );
  const [from, to] = [times[0], times.at(-1)];
  return from && to ? { from, to } : undefined;
}

const RESULT_STATES = ["running", "completed", "failed", "denied"];
/**
 * Returns the published state of a result. The published states have none for an interrupted action, so it is "failed".
 */
const resultState = (state: JsonValue | undefined): string =>
  typeof state === "string" && RESULT_STATES.includes(state) ? state : "failed";

const action = (payload: JsonObject): JsonObject => ({
  category: textOf(payload["category"]),
  name: textOf(payload["name"]),
});
const textOf = (value: JsonValue | undefined): string => (typeof value === "string" ? value : "");
const objectOf = (value: JsonValue | undefined): JsonObject =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};

/** Returns a step in its public form, in snake_case. */
export function publicStep(step: Step): JsonObject {
  const span = spanOf(step);
  return {
    id: step.id,
    messages: step.messages.map((message) => ({
      role: message.role,
      content: message.content,
      timestamp: message.timestamp.toISOString(),
      message_ids: message.messageIds,
    })),
    steps: step.steps.map(publicStep),
    ...(step.description === undefined ? {} : { description: step.description }),
    ...(step.summary === undefined ? {} : { summary: step.summary }),
    ...(span ? { started_at: span.from.toISOString(), completed_at: span.to.toISOString() } : {}),
  };
}
