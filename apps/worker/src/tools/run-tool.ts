import type { JsonObject } from "@bufbuild/protobuf";
import type { Clock } from "@millwright/clock";
import { isDomainError } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import { inSpan } from "@millwright/telemetry";
import { GitFailed } from "../git/host-git.ts";
import type { ToolCall } from "../model/model-provider.ts";
import { endOfStep } from "./turn-end.ts";
import { SandboxRefusal } from "../sandbox/sandbox-errors.ts";
import type { Tool, ToolContext, TurnEnd } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";
import { awaitsPlan, plan } from "./tools.ts";

export type RunToolOptions = {
  /** All tools of this execution. */
  readonly tools: readonly Tool[];
  /** `normal`, `plan` or `orchestrate`. It determines which tools are allowed and what a plan means. */
  readonly mode: string;
  readonly context: Omit<ToolContext, "callId">;
  readonly clock: Clock;
};

export type Ending = {
  readonly state: "completed" | "failed" | "denied" | "interrupted";
  readonly output: JsonObject;
  readonly end?: TurnEnd;
};

/**
 * Runs one call and records its start and end events. Errors of the agent, the sandbox, the platform or git become the
 * result for the agent. The call ends the turn only if its tool requests it. Throws the abort reason of a lost or
 * cancelled execution, `SandboxGone` and faults of the worker itself.
 */
export function runTool(call: ToolCall, options: RunToolOptions): Promise<Ending> {
  // a model may invent tool names
  const name = options.tools.find((tool) => tool.name === call.name)?.name ?? "unknown";
  const attributes = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": name,
    "gen_ai.tool.call.id": call.callId,
    "gen_ai.tool.type": "function",
  };
  return inSpan(`execute_tool ${name}`, { attributes }, async (span) => {
    const ending = await runRecorded(call, options);
    span.set({ "millwright.tool.state": ending.state });
    if (ending.state !== "completed") span.fail(`tool_${ending.state}`);
    return ending;
  });
}

async function runRecorded(call: ToolCall, options: RunToolOptions): Promise<Ending> {
  const { clock, context, tools, mode } = options;
  const { callId } = call;
  const tool = tools.find(({ name }) => name === call.name);
  const input = tool?.input.safeParse(call.input);
  const { action: name, category } = tool ?? { action: call.name, category: "integration" };
  const shown = tool && input?.success ? omitUndefined(tool.shown(input.data)) : {};
  const repeated = context.isRepeated(callId) || undefined;
  context.record("tool_start", { call_id: callId, name, category, input: shown, repeated });
  const started = clock.monotonicMs();
  const finish = (ending: Ending): Ending => {
    const durationMs = Math.round(clock.monotonicMs() - started);
    context.record("tool_end", {
      call_id: callId,
      name,
      category,
      input: shown,
      state: ending.state,
      output: ending.output,
      duration_ms: durationMs,
      repeated,
      end: endOfStep(ending.end),
    });
    return ending;
  };
  if (!tool || !input) return finish({ state: "failed", output: { error: `Unknown tool "${call.name}".` } });
  if (call.malformed !== undefined)
    return finish({ state: "failed", output: { error: malformedArguments(tool.name, call.malformed) } });
  if (!input.success)
    return finish({
      state: "failed",
      output: {
        error: input.error.issues.map((issue) => `${issue.path.join(".") || "input"}: ${issue.message}`).join("; "),
      },
    });
  if (!isAllowed(tool, mode))
    return finish({ state: "denied", output: { error: `${tool.name} is not allowed before a plan was approved.` } });
  const ending = await perform(tool, input.data, { ...context, callId });
  const awaitsApproval = tool === plan && ending.state === "completed" && awaitsPlan(mode);
  return finish(awaitsApproval ? { ...ending, end: { kind: "blocked", message: AWAITING_APPROVAL } } : ending);
}

const SHOWN_CHARACTERS_MAX = 200;

/** Returns the error for a model whose arguments are not a JSON object. */
export const malformedArguments = (tool: string, text: string): string =>
  `The arguments of ${tool} are malformed: they must be one JSON object (got ${JSON.stringify(text.slice(0, SHOWN_CHARACTERS_MAX))}). Send the call again.`;

/**
 * Returns whether a tool is allowed. Until its plan is approved, an agent may read, plan, ask and end; `orchestrate`
 * also requires an approved plan.
 */
export const isAllowed = (tool: Tool, mode: string): boolean => tool.isReadOnly || !awaitsPlan(mode);

const AWAITING_APPROVAL = "awaiting_approval: the plan is ready; answer to approve or change it.";

/** Records a call that an interrupt prevented. */
export function closeUnrun(call: ToolCall, { context, tools }: Pick<RunToolOptions, "context" | "tools">): void {
  const { action: name, category } = tools.find((tool) => tool.name === call.name) ?? {
    action: call.name,
    category: "integration",
  };
  context.record("tool_start", { call_id: call.callId, name, category, input: {} });
  context.record("tool_end", {
    call_id: call.callId,
    name,
    category,
    input: {},
    state: "interrupted",
    output: { error: "It was not started." },
    duration_ms: 0,
  });
}

async function perform(tool: Tool, input: unknown, context: ToolContext): Promise<Ending> {
  try {
    // also if an interrupt arrived too late to stop the call
    return { state: "completed", ...(await tool.run(input, context)) };
  } catch (error) {
    const state = context.signal.aborted ? "interrupted" : "failed";
    if (error instanceof ToolFailure) return { state, output: { error: error.message, ...error.output } };
    if (state === "interrupted") return { state, output: { error: "It was interrupted; its effect is unknown." } };
    if (error instanceof SandboxRefusal || error instanceof GitFailed || isDomainError(error))
      return { state: "failed", output: { error: error.message } };
    throw error;
  }
}
