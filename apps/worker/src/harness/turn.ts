import type { JsonObject } from "@bufbuild/protobuf";
import { inSpan } from "@millwright/telemetry";
import { z } from "zod";
import type { ExecutionContext } from "../executions/execution-context.ts";
import type { ModelProvider, ModelStep, Rule } from "../model/model-provider.ts";
import type { Tool, ToolContext, TurnEnd } from "../tools/tool.ts";
import { awaitsPlan, plan, toolsIn } from "../tools/tools.ts";
import type { Conversation } from "./conversation.ts";
import { closeUnrun, runTool } from "./run-tool.ts";
import type { TokenBudget } from "./token-budget.ts";

const STEP_LIMIT = 200;

/** What a turn needs; the same for all turns of an execution. */
export type TurnDeps = {
  readonly ctx: ExecutionContext;
  readonly provider: ModelProvider;
  readonly conversation: Conversation;
  readonly tools: Omit<ToolContext, "callId" | "signal">;
  readonly rules: readonly Rule[];
  /** Hands over what people have sent since; answers the mode of the newest message. */
  readonly takeMessages: () => Promise<string>;
  /** Steps that this execution has taken, over all its turns. */
  readonly steps: { count: number };
  readonly budget: TokenBudget;
};

/**
 * Lets the agent work until it has nothing more to do, or must stop. Each step is in the run's log before any of its tools runs; messages come in
 * between steps; an interrupt ends the running tool and the turn. Errors: the abort reason of the execution, SandboxGone, faults of the worker.
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
    const end = await inSpan("step", { attributes: { "millwright.step": deps.steps.count + 1 } }, () => oneStep(deps, { mode, allowed: toolsIn(mode), signal }, interrupted));
    if (end) return end;
  }
}

/** Asks for a step and takes it; answers how the turn ends, if it does. */
async function oneStep(deps: TurnDeps, options: StepOptions, interrupted: AbortSignal): Promise<TurnEnd | undefined> {
  const { ctx, provider, conversation } = deps;
  const { mode, allowed, signal } = options;
  const { basePrompt, agentPrompt, modelId } = ctx.assignment;
  const surroundings = { mode, directory: deps.tools.workspace.base, rules: deps.rules };
  const step = await provider.step({ basePrompt, agentPrompt, modelId, events: conversation.events, tools: allowed.map(describe), ...surroundings }, signal).catch((error: unknown) => {
    if (interrupted.aborted && !ctx.signal.aborted) return "interrupted" as const;
    throw error;
  });
  if (step === "interrupted") return { kind: "interrupted" };
  if (!step) return { kind: "done" };
  if ((deps.steps.count += 1) > (ctx.assignment.stepLimit || STEP_LIMIT)) return overLimit(ctx.assignment.stepLimit || STEP_LIMIT);
  await persist(deps, step);
  return takeStep(deps, step, options);
}

/** Write-ahead: after this the step is the platform's, and another attempt would know of it. */
async function persist({ ctx, conversation, budget }: TurnDeps, step: ModelStep): Promise<void> {
  const modelId = ctx.assignment.modelId || "scripted";
  const calls = step.toolCalls.map((call): JsonObject => ({ call_id: call.callId, name: call.name, input: call.input }));
  conversation.record("model_step", { step_id: step.stepId, text: step.text, tool_calls: calls, model_id: modelId });
  budget.spend(step.usage ?? {});
  await Promise.all([ctx.flushed(), ...(step.usage ? [ctx.platform.reportUsage({ callId: step.stepId, modelId, usage: step.usage })] : [])]);
}

type StepOptions = { readonly mode: string; readonly allowed: readonly Tool[]; readonly signal: AbortSignal };

async function takeStep({ ctx, tools }: TurnDeps, step: ModelStep, { mode, allowed, signal }: StepOptions): Promise<TurnEnd | undefined> {
  const context = { ...tools, signal };
  for (const [index, call] of step.toolCalls.entries()) {
    const { end, state } = await runTool(call, { allowed, context, clock: ctx.clock });
    ctx.signal.throwIfAborted();
    if (signal.aborted || end) {
      for (const unrun of step.toolCalls.slice(index + 1)) closeUnrun(unrun, context);
      return end ?? { kind: "interrupted" };
    }
    if (call.name === plan.name && state === "completed" && awaitsPlan(mode)) return { kind: "blocked", message: "awaiting_approval: the plan is ready; answer to approve or change it." };
  }
  if (signal.aborted) return { kind: "interrupted" };
  return step.next.kind === "go_on" ? undefined : step.next;
}

const overLimit = (limit: number): TurnEnd => ({
  kind: "failed",
  failure: { code: "budget_exceeded", message: `The agent took more than ${limit} steps.`, retryable: false, reason: "step_limit" },
});

const describe = ({ name, description, input }: Tool) => ({ name, description, inputSchema: z.toJSONSchema(input) as JsonObject });
