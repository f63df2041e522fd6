import type { JsonObject } from "@bufbuild/protobuf";
import { objectAt, textAt } from "../event-fields.ts";
import { AGENT_FAILED, type ConversationEvent, type ModelStep, type RunFailure } from "../model-provider.ts";
import { isToRepeat } from "../repeats.ts";
import { chooseScript, type Script } from "./choose-script.ts";
import { noScript } from "./no-script.ts";
import type { Step } from "./parse-script.ts";
import { ScriptError } from "./script-error.ts";

/** Zero tokens, which differs from an unknown number of tokens. */
const NO_TOKENS = { inputTokens: 0, outputTokens: 0, inputCacheReadTokens: 0, inputCacheWriteTokens: 0 };

/**
 * Returns the next step of the script, derived from the run's events alone: the same events always give the same step.
 * A completed step is returned again only if an `agent_resumed` event names it. Undefined when all steps are done.
 */
export function nextScriptedStep(events: readonly ConversationEvent[], agentPrompt: string): ModelStep | undefined {
  try {
    const script = chooseScript(events, agentPrompt);
    if (!script) return isAnswered(events) ? undefined : blocked(events);
    return new Progress(script, events).next();
  } catch (error) {
    if (!(error instanceof ScriptError)) throw error;
    return step(`invalid-${stepCount(events)}`, "", {
      kind: "failed",
      failure: { code: "invalid_request", message: error.message, retryable: false, reason: "script_invalid" },
    });
  }
}

const step = (
  stepId: string,
  text: string,
  next: ModelStep["next"],
  toolCalls: ModelStep["toolCalls"] = [],
): ModelStep => ({ stepId, text, toolCalls, usage: NO_TOKENS, next });
function blocked(events: readonly ConversationEvent[]): ModelStep {
  const prompt = events.findLast((event) => isMessage(event) && !isChildrenMessage(event));
  const { text, message } = noScript(textAt(prompt?.payload ?? {}, "text"));
  return step(`no-script-${stepCount(events)}`, text, { kind: "blocked", message });
}
const stepCount = (events: readonly ConversationEvent[]): number =>
  events.filter(({ kind }) => kind === "model_step").length;
const isMessage = ({ kind, payload }: ConversationEvent): boolean => kind === "message" && payload["role"] === "user";
const isChildrenMessage = (event: ConversationEvent): boolean =>
  isMessage(event) && event.payload["kind"] === "children";

/** Returns whether a step was taken since the newest message. */
const isAnswered = (events: readonly ConversationEvent[]): boolean =>
  events.findLastIndex(({ kind }) => kind === "model_step") > events.findLastIndex(isMessage);

/** The progress of a script. */
class Progress {
  readonly #script: Script;
  readonly #events: readonly ConversationEvent[];

  constructor(script: Script, events: readonly ConversationEvent[]) {
    this.#script = script;
    this.#events = events;
  }

  next(): ModelStep | undefined {
    const { steps } = this.#script;
    const index = steps.findIndex((_, candidate) => !this.#isDone(candidate));
    const last = (index < 0 ? steps.length : index) - 1;
    const failure = this.#failureOf(last) ?? this.#failureOfChildren(last);
    if (failure) return step(this.#idOf(last, "-failed", this.#endOf(last)), "", { kind: "failed", failure });
    const wait = this.#repeatedWait(last);
    if (wait) return wait;
    const upcoming = steps[index];
    if (upcoming) return toModelStep(this.#id(index), upcoming);
    return isAnswered(this.#events) || this.#needsNoFurtherStep(last) ? undefined : blocked(this.#events);
  }

  #id(index: number): string {
    return `${this.#script.id}-${index}`;
  }

  /** Returns a unique id for a step that follows another one, possibly several times. */
  #idOf(index: number, suffix: string, after: number): string {
    return `${this.#id(index)}${suffix}-${stepCount(this.#events.slice(after))}`;
  }

  #isDone(index: number): boolean {
    return this.#script.steps[index]?.action.kind === "tool"
      ? this.#endOf(index) >= 0
      : this.#events.some(({ kind, payload }) => kind === "model_step" && payload["step_id"] === this.#id(index));
  }

  /**
   * Returns the index of a tool's end event, or -1 if there is none. An end event before the step's last repeat request
   * does not count.
   */
  #endOf(index: number): number {
    const id = this.#id(index);
    const asked = this.#events.findLastIndex((event) => isToRepeat(event, id));
    return this.#events.findLastIndex(
      ({ kind, payload }, at) =>
        at > asked &&
        kind === "tool_end" &&
        (payload["call_id"] === id || textAt(payload, "call_id").startsWith(`${id}-again-`)),
    );
  }

  /** Returns the failure of a failed tool, unless a message has arrived since. */
  #failureOf(index: number): RunFailure | undefined {
    const done = this.#script.steps[index];
    const end = this.#endOf(index);
    if (done?.action.kind !== "tool" || done.action.mayFail || end < this.#events.findLastIndex(isMessage))
      return undefined;
    const fault = faultOf(this.#events[end]?.payload ?? {});
    return fault === undefined
      ? undefined
      : {
          code: AGENT_FAILED,
          message: `Step ${index + 1} (${done.name}, line ${done.line}) failed: ${fault}`,
          retryable: false,
          reason: "script_step_failed",
        };
  }

  /**
   * Returns the failure of a `wait` whose children did not succeed (with `any`: of which none succeeded), unless a user
   * message has arrived since.
   */
  #failureOfChildren(index: number): RunFailure | undefined {
    const waited = this.#script.steps[index];
    if (waited?.name !== "wait" || waited.action.kind !== "tool" || waited.action.mayFail) return undefined;
    const newest = this.#events.findLast(isMessage);
    if (newest === undefined || !isChildrenMessage(newest)) return undefined;
    const previousReport = this.#events.slice(0, this.#endOf(index)).findLastIndex(isChildrenMessage);
    const ended = lastEnds(this.#events.slice(previousReport + 1));
    const failed = ended.filter(({ payload }) => payload["state"] !== "SUCCEEDED");
    const isFailed =
      waited.action.input["policy"] === "any" ? failed.length > 0 && failed.length === ended.length : failed.length > 0;
    if (!isFailed) return undefined;
    const children = failed
      .map(({ payload }) => `${textAt(payload, "run_uid")} ended ${textAt(payload, "state")}`)
      .join(", ");
    return {
      code: AGENT_FAILED,
      message: `Step ${index + 1} (wait, line ${waited.line}): child run ${children}.`,
      retryable: false,
      reason: "child_run_failed",
    };
  }

  /** Waits again if a message resumed the run before its children ended. */
  #repeatedWait(index: number): ModelStep | undefined {
    const waited = this.#script.steps[index];
    const end = this.#endOf(index);
    if (waited?.name !== "wait" || waited.action.kind !== "tool") return undefined;
    const since = this.#events.slice(end).filter(isMessage);
    if (since.length === 0 || since.some(isChildrenMessage)) return undefined;
    const callId = `${this.#id(index)}-again-${stepCount(this.#events)}`;
    return step(callId, "", { kind: "continue" }, [{ callId, name: waited.action.name, input: waited.action.input }]);
  }

  /**
   * Returns whether the newest message only answers the last question or reports ended children, so that it requires no
   * further steps.
   */
  #needsNoFurtherStep(last: number): boolean {
    const newest = this.#events.findLast(isMessage);
    return this.#script.steps[last]?.name === "ask" || (newest !== undefined && isChildrenMessage(newest));
  }
}

function toModelStep(id: string, { action }: Step): ModelStep {
  if (action.kind === "say") return step(id, action.text, { kind: "continue" });
  if (action.kind === "tool")
    return step(id, "", { kind: "continue" }, [{ callId: id, name: action.name, input: action.input }]);
  return step(id, action.reason, {
    kind: "failed",
    failure: { code: AGENT_FAILED, message: action.reason, retryable: false, reason: "agent_failed" },
  });
}

/** Returns the last end of each child. A child that was BLOCKED and then answered ends again. */
const lastEnds = (events: readonly ConversationEvent[]): ConversationEvent[] => [
  ...new Map(
    events
      .filter(({ kind }) => kind === "child_finished")
      .map((event) => [textAt(event.payload, "run_uid"), event] as const),
  ).values(),
];

function faultOf(end: JsonObject): string | undefined {
  const output = objectAt(end, "output");
  const state = textAt(end, "state");
  if (state === "failed" || state === "denied") return textAt(output, "error") || "no reason given";
  const exitCode = output["exit_code"];
  return state === "completed" && typeof exitCode === "number" && exitCode !== 0 ? `exit code ${exitCode}` : undefined;
}
