import type { ExecutionContext } from "../context/execution-context.ts";
import { SandboxGone } from "../sandbox/sandbox-errors.ts";
import type { Workspace } from "../tools/tool.ts";
import { askUser } from "../tools/ask-user.ts";
import { plan } from "../tools/plan.ts";
import { pullRequest } from "../tools/pull-request.ts";
import { setStage } from "../tools/set-stage.ts";
import { spawnRun } from "../tools/spawn-run.ts";
import { TOOLS } from "../tools/tools.ts";
import { wait } from "../tools/wait.ts";
import { SAVES_NOTHING } from "../workspace/checkpoints.ts";
import { Conversation } from "../conversation/conversation.ts";
import { Messages } from "../conversation/messages.ts";
import type { SetupFailed } from "../workspace/set-up.ts";
import { runTurn } from "./turn.ts";
import { turnEndPayload } from "../tools/turn-end.ts";
import { toolContext } from "./tool-context.ts";
import type { ModelAgentDeps } from "./agent-deps.ts";

/** Tools with effects outside the workspace, or on the state of a run that has already failed. */
const EXCLUDED_TOOLS = [pullRequest, spawnRun, wait, setStage, askUser, plan];
const DEBUG_TOOLS = TOOLS.filter((tool) => !EXCLUDED_TOOLS.includes(tool));

/**
 * Lets users debug the workspace of a failed setup. Every follow-up message is a turn of an agent that knows only the
 * failure and the messages since. A turn that is running when the window ends may continue for at most the same time
 * again. Nothing is saved. Resolves when the window ends, with the reason if it ended early. Throws the abort reason of
 * the execution.
 */
export async function debugSession(
  deps: ModelAgentDeps,
  { message, workspace }: SetupFailed,
  ended: AbortSignal,
): Promise<string | undefined> {
  const { messages: earlier, provider } = deps;
  const ctx = debugContext(deps.ctx, provider.name === "scripted" ? "" : instructions(deps.ctx, message));
  const conversation = new Conversation([], ctx);
  const messages = new Messages({ ctx, conversation, sandbox: () => workspace.sandbox, inbox: earlier.inbox });
  messages.inbox.endTurn(); // the inbox begins with a turn, but the debug session has none yet
  const windowMs = ctx.assignment.debugWindowMs;
  const windowEndMs = ctx.clock.monotonicMs() + windowMs;
  const context = toolContext(ctx, conversation, workspace);
  const turnDeps = {
    ...deps,
    ctx,
    conversation,
    tools: DEBUG_TOOLS,
    context,
    rules: [],
    skills: [],
    notices: [],
    steps: new Set<string>(),
    checkpoints: SAVES_NOTHING,
    takeMessages: () => deliverMessages(messages),
  };
  const over = AbortSignal.any([ctx.signal, ended, sandboxEndSignal(workspace)]);
  try {
    for (;;) {
      ctx.phase("DEBUG");
      const remainingMs = windowEndMs - ctx.clock.monotonicMs();
      if (remainingMs <= 0 || (await messages.inbox.idle(remainingMs, over)) === "end") return undefined;
      ctx.phase("RUNNING");
      const turnTimeoutMs = Math.max(1, Math.ceil(windowEndMs + windowMs - ctx.clock.monotonicMs()));
      const end = await runTurn(
        turnDeps,
        AbortSignal.any([messages.inbox.beginTurn(), ended, AbortSignal.timeout(turnTimeoutMs)]),
      );
      conversation.record("turn_end", turnEndPayload(end));
      messages.inbox.endTurn();
    }
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (ended.aborted) return (ended.reason as Error).message;
    if (error instanceof SandboxGone) return "sandbox_died";
    throw error;
  }
}

function debugContext(ctx: ExecutionContext, agentPrompt: string): ExecutionContext {
  return { ...ctx, assignment: { ...ctx.assignment, agentPrompt, inputs: [] } };
}

/**
 * Returns the agent's instructions. Not used for the `scripted` provider: it executes steps in instructions, and the
 * output of a setup command must not be executed as a script.
 */
function instructions({ assignment }: ExecutionContext, failure: string): string {
  const task = assignment.inputs.map(({ text }) => text).join("\n\n");
  return [
    "The environment of a run could not be set up, so the run has failed. You work in the workspace that the failed setup left, for a limited time, to help users find the cause. Do not do the run's task. Nothing that you change here is saved.",
    `The failure:\n${failure}`,
    ...(task === "" ? [] : [`What the run was asked to do:\n${task}`]),
  ].join("\n\n");
}

/** Delivers the messages and ignores their mode, which has no meaning in a debug session. */
async function deliverMessages(messages: Messages): Promise<string> {
  await messages.take();
  return "normal";
}

function sandboxEndSignal({ sandbox }: Workspace): AbortSignal {
  const ended = new AbortController();
  void sandbox.gone.then(() => ended.abort(new SandboxGone("The sandbox has ended.")));
  return ended.signal;
}
