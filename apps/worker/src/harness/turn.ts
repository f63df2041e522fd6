import type { JsonObject } from "@bufbuild/protobuf";
import { inSpan } from "@millwright/telemetry";
import { z } from "zod";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { ModelProvider, ModelStep, Rule, Summary } from "../model/model-provider.ts";
import type { Tool, ToolContext, TurnEnd } from "../tools/tool.ts";
import type { Saving } from "../workspace/checkpoints.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { isAllowed } from "../tools/run-tool.ts";
import { takeStep } from "./take-step.ts";
import type { TokenBudget } from "../conversation/token-budget.ts";
import { endOfStep } from "../tools/turn-end.ts";

const STEP_LIMIT = 200;

/** The dependencies of a turn; the same for all turns of an execution. */
export type TurnDeps = {
  readonly ctx: ExecutionContext;
  readonly provider: ModelProvider;
  readonly conversation: Conversation;
  /** All tools of the agent, in any mode. */
  readonly tools: readonly Tool[];
  readonly context: Omit<ToolContext, "callId" | "signal">;
  readonly rules: readonly Rule[];
  readonly skills: readonly { readonly name: string; readonly description: string }[];
  readonly notices: readonly string[];
  /** Delivers new messages and returns the mode of the newest one. */
  readonly takeMessages: () => Promise<string>;
  /**
   * The ids of the steps that this execution has taken, over all its turns and attempts. A step that a script repeats
   * has the same id.
   */
  readonly steps: Set<string>;
  readonly budget: TokenBudget;
  readonly checkpoints: Saving;
};

/**
 * Runs the agent until it has nothing more to do or must stop. Each step is stored in the run's events before any of
 * its tools runs. Messages are delivered between steps. An interrupt ends the running tool and the turn. Throws the
 * abort reason of the execution, `SandboxGone` and faults of the worker.
 */
export async function runTurn(deps: TurnDeps, interrupted: AbortSignal): Promise<TurnEnd> {
  const { ctx } = deps;
  const signal = AbortSignal.any([ctx.signal, interrupted]);
  for (;;) {
    const mode = await deps.takeMessages();
    ctx.signal.throwIfAborted();
    if (interrupted.aborted) return { kind: "interrupted" };
    const failure = deps.budget.exceeded();
    if (failure) return { kind: "failed", failure };
    if (deps.provider.isSlow) deps.checkpoints.begin(); // the workspace is idle while the model responds
    const end = await inSpan("step", { attributes: { "millwright.step": deps.steps.size + 1 } }, () =>
      runStep(deps, mode, signal, interrupted),
    );
    if (end) return end;
  }
}

/** Requests a step and runs it. Returns how the turn ends, if it does. */
async function runStep(
  deps: TurnDeps,
  mode: string,
  signal: AbortSignal,
  interrupted: AbortSignal,
): Promise<TurnEnd | undefined> {
  const { ctx, context, checkpoints, tools } = deps;
  const step = await requestStep(deps, mode, signal).catch((error: unknown) => {
    if (interrupted.aborted && !ctx.signal.aborted) return "interrupted" as const;
    throw error;
  });
  if (step === "interrupted") return { kind: "interrupted" };
  if (!step) return { kind: "done" };
  if ("retainedFrom" in step) return recordSummary(deps, step);
  if (deps.steps.add(step.stepId).size > (ctx.assignment.stepLimit || STEP_LIMIT))
    return stepLimitExceeded(ctx.assignment.stepLimit || STEP_LIMIT);
  await persist(deps, step);
  const end = await takeStep(
    { tools, mode, checkpoints, clock: ctx.clock, mask: (text) => ctx.mask(text), context: { ...context, signal } },
    step,
  );
  ctx.signal.throwIfAborted();
  return end;
}

function requestStep(
  { ctx, provider, conversation, tools, context, rules, skills, notices }: TurnDeps,
  mode: string,
  signal: AbortSignal,
): Promise<ModelStep | Summary | undefined> {
  const { basePrompt, agentPrompt, modelId } = ctx.assignment;
  const history = { events: conversation.events, earlier: conversation.earlier };
  const surroundings = {
    mode,
    mustCallTool: ctx.assignment.judge !== undefined,
    directory: context.workspace.base,
    rules,
    skills,
    notices,
    tools: tools.filter((tool) => isAllowed(tool, mode)).map(describe),
  };
  return provider.step({ basePrompt, agentPrompt, modelId, ...history, ...surroundings }, signal);
}

/**
 * Writes the step ahead of its execution: afterwards the platform has stored it, and another attempt can resume from
 * it.
 */
async function persist({ ctx, conversation, budget }: TurnDeps, step: ModelStep): Promise<void> {
  const modelId = ctx.assignment.modelId || "scripted";
  const calls = step.toolCalls.map(({ callId, ...call }): JsonObject => ({ call_id: callId, ...call }));
  const payload = {
    step_id: step.stepId,
    text: step.text,
    tool_calls: calls,
    model_id: modelId,
    end: endOfStep(step.next),
  };
  conversation.record("model_step", step.usage ? { ...payload, usage: { ...step.usage } } : payload);
  budget.spend(step.usage ?? {});
  await Promise.all([
    ctx.flushed(),
    ...(step.usage ? [ctx.platform.reportUsage({ callId: step.stepId, modelId, usage: step.usage })] : []),
  ]);
}

/**
 * Records a summary. From then on, the model reads it in place of the summarized events; the events themselves remain
 * visible to users.
 */
async function recordSummary(
  { ctx, conversation, budget }: TurnDeps,
  { callId, text, retainedFrom, usage }: Summary,
): Promise<undefined> {
  const { modelId } = ctx.assignment;
  conversation.record("conversation_summarized", {
    summary: text,
    retained_from: retainedFrom,
    model_id: modelId,
    call_id: callId,
  });
  budget.spend(usage ?? {});
  await Promise.all([ctx.flushed(), ...(usage ? [ctx.platform.reportUsage({ callId, modelId, usage })] : [])]);
}

const stepLimitExceeded = (limit: number): TurnEnd => ({
  kind: "failed",
  failure: {
    code: "budget_exceeded",
    message: `The agent took more than ${limit} steps.`,
    retryable: false,
    reason: "step_limit",
  },
});

const describe = ({ name, description, input, inputSchema }: Tool) => ({
  name,
  description,
  inputSchema: inputSchema ?? (z.toJSONSchema(input) as JsonObject),
});
