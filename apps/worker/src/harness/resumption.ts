import type { JsonObject } from "@bufbuild/protobuf";
import { isAnObject, objectAt, textAt } from "../model/event-fields.ts";
import type { ConversationEvent, ToolCall } from "../model/model-provider.ts";
import { isToRepeat } from "../model/repeats.ts";
import type { Tool, TurnEnd } from "../tools/tool.ts";
import { endIn } from "../tools/turn-end.ts";

/** A tool call as the events describe it. */
export type PastCall = ToolCall & {
  /** `running`: the call was running when its worker or sandbox was lost, so its effect is unknown. */
  readonly state: "done" | "running" | "requested";
  /** Whether an end event is recorded, even if the call was only interrupted. */
  readonly isClosed: boolean;
  /** What the call changes, and whether the newest checkpoint contains its changes. */
  readonly changes: Tool["changes"];
  readonly isCovered: boolean;
};

/** The position from which an execution continues whose worker or sandbox was lost. */
export type Resumption = {
  readonly calls: readonly PastCall[];
  readonly stepIds: readonly string[];
  /** Set if the turn had ended and no message has arrived since. */
  readonly end: TurnEnd | undefined;
  /** Whether a turn had started and not ended. */
  readonly isInTurn: boolean;
  /** The working directory of the agent's shell, as a path in the workspace of that attempt. */
  readonly cwd: string;
  /** Model calls whose response was received but whose usage was not reported. */
  readonly uncounted: readonly {
    readonly callId: string;
    readonly modelId: string;
    readonly usage: Readonly<Record<string, number>>;
  }[];
};

/**
 * Derives the position of an execution from its own events, oldest first, as earlier attempts have written them. A
 * checkpoint covers every call that ended before it. A call is never repeated from its stored input if that input was
 * truncated or contains a masked secret.
 */
export function resumptionOf(
  events: readonly ConversationEvent[],
  tools: readonly Pick<Tool, "name" | "changes">[],
): Resumption {
  const checkpointAt = events.findLastIndex(({ kind }) => kind === "checkpoint");
  const steps = events.filter(({ kind }) => kind === "model_step");
  const counted = new Set(
    events.filter(({ kind }) => kind === "usage_recorded").map(({ payload }) => textAt(payload, "call_id")),
  );
  const shells = events.filter(
    ({ kind, payload }) => kind === "tool_end" && textAt(objectAt(payload, "output"), "cwd") !== "",
  );
  const end = openEnd(events);
  return {
    calls: newest(
      steps.flatMap(({ payload }) =>
        callsOf(payload).map((call) => pastCall(events, call, tools, checkpointAt, payload["truncated"] === true)),
      ),
    ),
    stepIds: steps.map(({ payload }) => textAt(payload, "step_id")),
    end,
    isInTurn:
      end === undefined &&
      events.some(({ kind, payload }) => kind === "model_step" || isUserMessage({ kind, payload })),
    cwd: textAt(objectAt(shells.at(-1)?.payload ?? {}, "output"), "cwd"),
    uncounted: steps.flatMap(({ payload }) => {
      const callId = textAt(payload, "step_id");
      const usage = Object.entries(objectAt(payload, "usage")).filter(
        (entry): entry is [string, number] => typeof entry[1] === "number",
      );
      return usage.length === 0 || counted.has(callId)
        ? []
        : [{ callId, modelId: textAt(payload, "model_id"), usage: Object.fromEntries(usage) }];
    }),
  };
}

/** Returns the newest record of each call. A script requests a repeated call again with the same id. */
const newest = (calls: readonly PastCall[]): PastCall[] =>
  calls.filter(({ callId }, index) => calls.findLastIndex((call) => call.callId === callId) === index);

/** Returns the calls that a step requested. */
export const callsOf = (step: JsonObject): ToolCall[] =>
  (Array.isArray(step["tool_calls"]) ? step["tool_calls"] : [])
    .filter(isAnObject)
    .map((call) => ({ callId: textAt(call, "call_id"), name: textAt(call, "name"), input: objectAt(call, "input") }));

const MASK = "***";

function pastCall(
  events: readonly ConversationEvent[],
  call: ToolCall,
  tools: readonly Pick<Tool, "name" | "changes">[],
  checkpointAt: number,
  isCut: boolean,
): PastCall {
  const isOf = ({ payload }: ConversationEvent) => payload["call_id"] === call.callId;
  const asked = events.findLastIndex((event) => isToRepeat(event, call.callId)) + 1;
  const [startedAt, endedAt] = ["tool_start", "tool_end"].map((kind) =>
    events.findLastIndex((event, at) => at >= asked && event.kind === kind && isOf(event)),
  ) as [number, number];
  const declared = tools.find(({ name }) => name === call.name)?.changes ?? "anything";
  const isStoredVerbatim = !isCut && !JSON.stringify(call.input).includes(MASK);
  return {
    ...call,
    state:
      startedAt < 0 ? "requested" : endedAt < startedAt || isInterruptedByLoss(events, endedAt) ? "running" : "done",
    isClosed: endedAt >= 0 && endedAt >= startedAt,
    changes: declared === "files" && !isStoredVerbatim ? "anything" : declared,
    isCovered: endedAt >= 0 && endedAt >= startedAt && endedAt < checkpointAt,
  };
}

/**
 * Returns whether a call ended only because its attempt ended: a worker that stops interrupts running calls, and so
 * does one that is lost while it resumes. An interrupt by a user also ends the turn. Calls before an `agent_resumed`
 * event were already handled.
 */
function isInterruptedByLoss(events: readonly ConversationEvent[], endedAt: number): boolean {
  if (events[endedAt]?.payload["state"] !== "interrupted") return false;
  return !events.slice(endedAt + 1).some(({ kind }) => kind === "turn_end" || kind === "agent_resumed");
}

const isUserMessage = ({ kind, payload }: ConversationEvent): boolean =>
  kind === "message" && payload["role"] === "user";

/** Returns the newest recorded end of a turn, unless a message has arrived or the agent has taken a step since. */
function openEnd(events: readonly ConversationEvent[]): TurnEnd | undefined {
  const messageAt = events.findLastIndex(isUserMessage);
  const since = events.slice(messageAt + 1);
  const steppedAt = since.findLastIndex(({ kind }) => kind === "model_step");
  return since
    .slice(Math.max(0, steppedAt))
    .map(endIn)
    .findLast((end) => end !== undefined);
}
