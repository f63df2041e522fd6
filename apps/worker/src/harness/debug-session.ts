import type { ExecutionContext } from "../executions/execution-context.ts";
import { SandboxGone } from "../sandbox/channel.ts";
import type { Workspace } from "../tools/tool.ts";
import { askUser } from "../tools/ask-user.ts";
import { plan } from "../tools/plan.ts";
import { pullRequest } from "../tools/pull-request.ts";
import { setStage } from "../tools/set-stage.ts";
import { spawnRun } from "../tools/spawn-run.ts";
import { TOOLS } from "../tools/tools.ts";
import { wait } from "../tools/wait.ts";
import { SAVES_NOTHING } from "./checkpoints.ts";
import { Conversation } from "./conversation.ts";
import { Messages } from "./messages.ts";
import type { SetupFailed } from "./set-up.ts";
import { runTurn } from "./turn.ts";
import { turnEndPayload } from "./turn-end.ts";
import { toolContext, type ModelAgentDeps } from "./run-agent.ts";

/** Nothing that reaches beyond the workspace, or that would change a run which has failed. */
const WITHHELD = [pullRequest, spawnRun, wait, setStage, askUser, plan];
const DEBUG_TOOLS = TOOLS.filter((tool) => !WITHHELD.includes(tool));

/**
 * The workspace of a failed setup, kept for people to look into: every follow-up is a turn there, of an agent that knows only of the failure and of what was said
 * since. A turn that runs when the time is over may go on for as long again. Nothing of it is saved. Resolves when the window is over, to the reason
 * if that is not the time. Errors: the abort reason of the execution.
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
  messages.inbox.endTurn(); // there is none yet
  const windowMs = ctx.assignment.debugWindowMs;
  const overMs = ctx.clock.monotonicMs() + windowMs;
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
    takeMessages: () => takeNormally(messages),
  };
  const over = AbortSignal.any([ctx.signal, ended, whenGone(workspace)]);
  try {
    for (;;) {
      ctx.phase("DEBUG");
      const leftMs = overMs - ctx.clock.monotonicMs();
      if (leftMs <= 0 || (await messages.inbox.idle(leftMs, over)) === "end") return undefined;
      ctx.phase("RUNNING");
      const lateMs = Math.max(1, Math.ceil(overMs + windowMs - ctx.clock.monotonicMs()));
      const end = await runTurn(
        turnDeps,
        AbortSignal.any([messages.inbox.beginTurn(), ended, AbortSignal.timeout(lateMs)]),
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

/** Kept from scripts, which take steps from instructions: what a setup command has said is no script. */
function instructions({ assignment }: ExecutionContext, failure: string): string {
  const task = assignment.inputs.map(({ text }) => text).join("\n\n");
  return [
    "The environment of a run could not be set up, so the run has failed. You are in what the setup left, for a short while, to help people find out why. You do not do the run's task, and nothing you change here is kept.",
    `The failure:\n${failure}`,
    ...(task === "" ? [] : [`What the run was asked to do:\n${task}`]),
  ].join("\n\n");
}

/** In a live session the mode of a message means nothing (fields-runs §6.12). */
async function takeNormally(messages: Messages): Promise<string> {
  await messages.take();
  return "normal";
}

function whenGone({ sandbox }: Workspace): AbortSignal {
  const gone = new AbortController();
  void sandbox.gone.then(() => gone.abort(new SandboxGone("The sandbox has ended.")));
  return gone.signal;
}
