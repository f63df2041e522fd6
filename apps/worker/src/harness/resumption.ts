import type { JsonObject } from "@bufbuild/protobuf";
import { isAnObject, objectAt, textAt } from "../model/event-fields.ts";
import type { ConversationEvent, ToolCall } from "../model/model-provider.ts";
import { isToRepeat } from "../model/repeats.ts";
import type { Tool, TurnEnd } from "../tools/tool.ts";
import { endIn } from "./turn-end.ts";

/** A call of a tool as the events tell it. */
export type PastCall = ToolCall & {
  /** begun: it was running when its worker or its sandbox was lost, so its effect is unknown. */
  readonly state: "done" | "begun" | "asked";
  /** Its end is recorded, also that of a call which was only broken off. */
  readonly isClosed: boolean;
  /** What a next sandbox has of its changes to the workspace, when it begins with the newest checkpoint. */
  readonly changes: Tool["changes"];
  readonly isCovered: boolean;
};

/** Where an execution goes on whose worker, or whose sandbox, was lost. */
export type Resumption = {
  readonly calls: readonly PastCall[];
  readonly stepIds: readonly string[];
  /** The turn had ended, and nothing was said since. */
  readonly end: TurnEnd | undefined;
  /** A turn had begun, and had not ended. */
  readonly isInTurn: boolean;
  /** Where the agent's shell stood, as a path in the workspace of that attempt. */
  readonly cwd: string;
  /** Model calls that were answered, and counted nowhere. */
  readonly uncounted: readonly {
    readonly callId: string;
    readonly modelId: string;
    readonly usage: Readonly<Record<string, number>>;
  }[];
};

/**
 * Reads where an execution stands from its own events, oldest first, as earlier attempts have written them. A checkpoint covers every call that
 * ended before it. A call whose stored input is not what was asked (cut, or with a secret masked) is never done over from there.
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
      end === undefined && events.some(({ kind, payload }) => kind === "model_step" || isSpoken({ kind, payload })),
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

/** A script asks again for a call that it repeats; it is one call. */
const newest = (calls: readonly PastCall[]): PastCall[] =>
  calls.filter(({ callId }, index) => calls.findLastIndex((call) => call.callId === callId) === index);

/** The calls that a step asked for. */
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
    state: startedAt < 0 ? "asked" : endedAt < startedAt || isBrokenOff(events, endedAt) ? "begun" : "done",
    isClosed: endedAt >= 0 && endedAt >= startedAt,
    changes: declared === "files" && !isStoredVerbatim ? "anything" : declared,
    isCovered: endedAt >= 0 && endedAt >= startedAt && endedAt < checkpointAt,
  };
}

/**
 * Whether a call ended because its attempt did: a worker that stops breaks off what runs, as does one that is lost while it resumes. An interrupt of
 * somebody's ends the turn as well, and what a resumed agent was told of is decided.
 */
function isBrokenOff(events: readonly ConversationEvent[], endedAt: number): boolean {
  if (events[endedAt]?.payload["state"] !== "interrupted") return false;
  return !events.slice(endedAt + 1).some(({ kind }) => kind === "turn_end" || kind === "agent_resumed");
}

const isSpoken = ({ kind, payload }: ConversationEvent): boolean => kind === "message" && payload["role"] === "user";

/** The newest word on the end of a turn, unless somebody has spoken since or the agent has gone on. */
function openEnd(events: readonly ConversationEvent[]): TurnEnd | undefined {
  const spokenAt = events.findLastIndex(isSpoken);
  const since = events.slice(spokenAt + 1);
  const steppedAt = since.findLastIndex(({ kind }) => kind === "model_step");
  return since
    .slice(Math.max(0, steppedAt))
    .map(endIn)
    .findLast((end) => end !== undefined);
}
