import { adapterNamed } from "../adapters/adapters.ts";
import type { HarnessAdapter } from "../adapters/harness-adapter.ts";
import { ModelGateway } from "../adapters/model-gateway.ts";
import { newUid } from "@millwright/ids";
import type { ExecutionContext, ExecutionResult } from "../context/execution-context.ts";
import { SandboxStartFailed, SandboxGone } from "../sandbox/sandbox-errors.ts";
import { AGENT_IDENTITY } from "../git/sandbox-git.ts";
import type { ModelProvider } from "../model/model-provider.ts";
import { providerFor } from "../model/providers.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { HARNESS, hostOf, type HarnessProgram } from "../sandbox/spec.ts";
import type { Workspace } from "../tools/tool.ts";
import { sandboxEndResult, startAgentSandbox } from "./agent-sandbox.ts";
import { debugSession } from "./debug-session.ts";
import { Conversation } from "../conversation/conversation.ts";
import { Messages } from "../conversation/messages.ts";
import { harnessRefusalOf, refusalOf } from "./refusal.ts";
import type { Checkpoints } from "../workspace/checkpoints.ts";
import { SetupFailed } from "../workspace/set-up.ts";
import { TokenBudget } from "../conversation/token-budget.ts";
import { saveAfterCrash, saveAfterStop } from "./saved-workspace.ts";
import { runAgent } from "./run-agent.ts";
import type { RunAgentDeps } from "./agent-deps.ts";

/** The maximum number of new sandboxes after the agent's own has ended unexpectedly. */
const CRASHES_MAX = 1;

/**
 * Runs one attempt of an execution, from an empty directory to its result: sandbox, workspace, the agent's turns,
 * snapshot. After a lost attempt or sandbox, it resumes from the execution's events. Nothing that it started remains
 * when it returns. If it was stopped and its workspace may be saved, the result is CANCELLED and states where it is
 * stored; otherwise it throws the abort reason. Throws `SandboxStartFailed` and faults of the worker itself.
 */
export async function runExecution(ctx: ExecutionContext): Promise<ExecutionResult> {
  const conversation = new Conversation(await ctx.platform.readHistory(), ctx);
  const agent = agentFor(ctx, conversation);
  if (typeof agent === "string") return refuse(conversation, ctx, agent);
  ctx.phase("SETUP");
  const session = new AgentSession(ctx, conversation, agent);
  for (let crashes = 0; ; crashes += 1) {
    try {
      return await session.run();
    } catch (error) {
      if (ctx.signal.aborted) return session.stopped();
      if (!(error instanceof SandboxGone)) throw error;
      ctx.log.warn({ operation: "sandbox", error }, "sandbox ended by itself");
      if (!session.canContinue || crashes >= CRASHES_MAX) return session.died();
      conversation.record("warning", {
        text: "The sandbox ended while the agent was working in it. The agent continues in a new one.",
      });
    }
  }
}

type Agent =
  | { readonly provider: ModelProvider }
  | { readonly adapter: HarnessAdapter; readonly files: HarnessProgram };

/**
 * Returns the agent (the platform's own loop with a model, or a third-party agent program), or a text that explains why
 * neither is available.
 */
function agentFor(ctx: ExecutionContext, conversation: Conversation): Agent | string {
  const { harness, provider: name, providerCredentials } = ctx.assignment;
  const hasCredentials = providerCredentials !== undefined;
  if (harness !== "" && harness !== "oz") {
    const [adapter, files] = [adapterNamed(harness), hostOf(ctx.sandbox).harnesses?.get(harness)];
    const refusal = harnessRefusalOf(harness, name, ctx.sandbox, {
      isThere: adapter !== undefined && files !== undefined,
      hasCredentials,
    });
    return refusal ?? { adapter: adapter!, files: files! };
  }
  const provider = providerFor(ctx, (kind, payload) => conversation.record(kind, payload));
  const refusal = refusalOf(provider, name, ctx.sandbox, hasCredentials);
  return refusal ?? { provider: provider! };
}

/** The state of an agent that is shared by its sandboxes. */
class AgentSession {
  #workspace: Workspace | undefined;
  #checkpoints: Checkpoints | undefined;
  #sandbox: Sandbox | undefined;
  readonly #ctx: ExecutionContext;
  readonly #conversation: Conversation;
  readonly #agent: Agent;
  #gateway: ModelGateway | undefined;
  readonly #messages: Messages;
  readonly #budget: TokenBudget;

  constructor(ctx: ExecutionContext, conversation: Conversation, agent: Agent) {
    this.#ctx = ctx;
    this.#conversation = conversation;
    this.#agent = agent;
    this.#messages = new Messages({ ctx, conversation, sandbox: () => this.#workspace!.sandbox });
    this.#budget = new TokenBudget(Number(ctx.assignment.tokenLimit), conversation.events);
  }

  /** Runs the agent in one sandbox. Throws `SandboxGone` and the errors of `runExecution`. */
  async run(): Promise<ExecutionResult> {
    const parked = this.#workspace ? undefined : await this.#ctx.takeParked();
    return this.#inSandbox(async (sandbox) => {
      const agent = this.#agent;
      const engine =
        "provider" in agent
          ? { provider: agent.provider }
          : { harness: { adapter: agent.adapter, program: `${HARNESS}/${agent.files.file}`, gateway: this.#gateway! } };
      const deps = {
        ctx: this.#ctx,
        conversation: this.#conversation,
        ...engine,
        messages: this.#messages,
        budget: this.#budget,
      };
      return runAgent(deps, sandbox, { before: this.#workspace, parked }, (workspace, checkpoints) => {
        this.#workspace = workspace;
        this.#checkpoints = checkpoints;
      }).catch((error: unknown) => {
        if (error instanceof SetupFailed) return this.#notSetUp(deps, error);
        throw error;
      });
    });
  }

  /**
   * Returns the failed result. If the environment has a debug window, it first retains the workspace for that time.
   * Throws the errors of `debugSession`.
   */
  async #notSetUp(deps: RunAgentDeps, failure: SetupFailed): Promise<ExecutionResult> {
    const result = failed("FAILED", "environment_setup_failed", failure.reason, failure.message);
    if (this.#workspace || !("provider" in deps)) return result; // only the platform's own agent supports debugging
    const ended = await this.#ctx.retain(result);
    const why = ended && (await debugSession(deps, failure, ended));
    return why === undefined ? result : { ...result, message: why };
  }

  /** Whether a new sandbox may help: the agent had started, and no limit was exceeded. */
  get canContinue(): boolean {
    return this.#workspace !== undefined && this.#sandbox?.breach === undefined;
  }

  /**
   * Returns the result of an execution whose sandbox cannot be replaced. The workspace is saved unless a limit was
   * exceeded.
   */
  async died(): Promise<ExecutionResult> {
    const [checkpoints, dead] = [this.#checkpoints, this.#sandbox!];
    const result = sandboxEndResult(dead, this.#conversation);
    if (!checkpoints || dead.breach) return result;
    const snapshotKey = await saveAfterCrash({ ctx: this.#ctx, checkpoints });
    if (this.#ctx.signal.aborted) return this.stopped();
    return snapshotKey === undefined ? result : { ...result, snapshotKey };
  }

  /**
   * Returns the result of a stopped execution, after its last sandbox has ended. Its workspace is saved if its setup
   * was complete and no limit was exceeded. Throws the abort reason if nothing is to be saved.
   */
  async stopped(): Promise<ExecutionResult> {
    const [ctx, conversation, checkpoints] = [this.#ctx, this.#conversation, this.#checkpoints];
    const means = ctx.lastSave();
    if (!means || !checkpoints || ctx.assignment.judge || this.#sandbox?.breach) throw ctx.signal.reason;
    return { outcome: "CANCELLED", ...(await saveAfterStop({ ctx, conversation, checkpoints }, means)) };
  }

  async #inSandbox(act: (sandbox: Sandbox) => Promise<ExecutionResult>): Promise<ExecutionResult> {
    const { assignment } = this.#ctx;
    const env = { ...AGENT_IDENTITY, MILLWRIGHT_RUN_ID: assignment.runUid, ...assignment.env, ...assignment.secrets };
    const gateway = (this.#gateway =
      "adapter" in this.#agent ? await ModelGateway.listen({ ctx: this.#ctx, budget: this.#budget }) : undefined);
    const shown = "adapter" in this.#agent ? [{ source: this.#agent.files.directory, target: HARNESS }] : [];
    let result: ExecutionResult | undefined;
    const starting = startAgentSandbox(this.#ctx, this.#conversation, env, {
      relays: gateway ? [gateway.relay] : [],
      shown,
    });
    const sandbox = (this.#sandbox = await starting.catch((error: unknown) => {
      gateway?.close();
      this.#ctx.signal.throwIfAborted();
      throw new SandboxStartFailed(whyNotStarted(error), error);
    }));
    void sandbox.gone.then(() => gateway?.close());
    try {
      return (result = await act(sandbox));
    } finally {
      await sandbox.stop();
      const outcome = result?.outcome ?? (this.#ctx.signal.aborted ? "CANCELLED" : "ERROR");
      this.#conversation.record("sandbox_stopped", { reason: outcome.toLowerCase() });
    }
  }
}

/** Returns the reason of a failed start for users: bubblewrap's message, but no path of the worker's machine. */
function whyNotStarted(error: unknown): string {
  const code = (error as NodeJS.ErrnoException).code;
  const cause =
    error instanceof SandboxGone
      ? error.message
      : `The worker could not prepare it${code === undefined ? "." : ` (${code}).`}`;
  return `The sandbox could not be started. ${cause}`;
}

/** Records the reason in the conversation, without starting anything. */
function refuse(conversation: Conversation, ctx: ExecutionContext, message: string): ExecutionResult {
  conversation.record("agent_started", { session_id: newUid() });
  for (const input of ctx.assignment.inputs)
    conversation.record("message", { role: "user", text: input.text, message_uid: input.uid, kind: input.kind });
  conversation.record("message", { role: "assistant", text: message });
  return { outcome: "BLOCKED", message };
}

const failed = (outcome: "FAILED" | "ERROR", code: string, reason: string, message: string): ExecutionResult => ({
  outcome,
  error: { code, message, retryable: false, reason },
});
