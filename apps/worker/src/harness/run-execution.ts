import { bestEffort } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { inSpan } from "@millwright/telemetry";
import type { ExecutionContext, ExecutionResult } from "../executions/execution-context.ts";
import { push } from "../git/push.ts";
import { AGENT_IDENTITY } from "../git/sandbox-git.ts";
import { snapshotFile, takeSnapshot } from "../git/take-snapshot.ts";
import type { ModelProvider } from "../model/model-provider.ts";
import { providerFor } from "../model/providers.ts";
import { SandboxGone } from "../sandbox/channel.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { hostOf } from "../sandbox/spec.ts";
import type { ToolContext, Workspace } from "../tools/tool.ts";
import { diedOf, startAgentSandbox } from "./agent-sandbox.ts";
import { converse } from "./converse.ts";
import { Conversation } from "./conversation.ts";
import { readRules } from "./read-rules.ts";
import { refusalOf } from "./refusal.ts";
import { resultOf } from "./result.ts";
import { SetupFailed, setUp } from "./set-up.ts";
import { TokenBudget } from "./token-budget.ts";

/**
 * One execution, from an empty directory to its result: sandbox, workspace, the agent's turns, snapshot. Everything it starts is gone when it
 * returns. Errors: the abort reason of the execution, faults of the worker itself.
 */
export async function runExecution(ctx: ExecutionContext): Promise<ExecutionResult> {
  const { assignment } = ctx;
  const conversation = new Conversation(await ctx.platform.readHistory(), (kind, payload) => ctx.emit(kind, payload));
  const provider = providerFor(ctx, (text) => conversation.record("warning", { text }));
  const refusal = refusalOf(provider, assignment.provider, ctx.sandbox, assignment.providerCredentials !== undefined);
  if (!provider || refusal !== undefined) return refuse(conversation, ctx, refusal ?? "");
  ctx.phase("SETUP");
  const env = { ...AGENT_IDENTITY, MILLWRIGHT_RUN_ID: assignment.runUid, ...assignment.env, ...assignment.secrets };
  const sandbox = await startAgentSandbox(ctx, conversation, env);
  let result: ExecutionResult | undefined;
  try {
    result = await work(ctx, conversation, sandbox, provider);
    return result;
  } catch (error) {
    ctx.signal.throwIfAborted();
    if (!(error instanceof SandboxGone)) throw error;
    ctx.log.warn({ operation: "sandbox", error }, "sandbox ended by itself");
    result = diedOf(sandbox, conversation);
    return result;
  } finally {
    await sandbox.stop();
    conversation.record("sandbox_stopped", { reason: (result?.outcome ?? (ctx.signal.aborted ? "CANCELLED" : "ERROR")).toLowerCase() });
  }
}

async function work(ctx: ExecutionContext, conversation: Conversation, sandbox: Sandbox, provider: ModelProvider): Promise<ExecutionResult> {
  let workspace: Workspace;
  try {
    workspace = await inSpan("set_up", {}, () => setUp(ctx, conversation, sandbox));
  } catch (error) {
    if (error instanceof SetupFailed) return failed("FAILED", "environment_setup_failed", error.reason, error.message);
    throw error;
  }
  ctx.phase("RUNNING");
  const rules = provider.name === "scripted" ? [] : await readRules(workspace); // a script reads no rules
  conversation.record("agent_started", { session_id: newUid() });
  const budget = new TokenBudget(Number(ctx.assignment.tokenLimit), conversation.events);
  const result = resultOf(await converse({ ctx, provider, conversation, tools: toolContext(ctx, conversation, workspace), rules, budget, steps: { count: 0 } }));
  ctx.phase("STOPPING");
  const snapshotKey = await saveSnapshot(ctx, conversation, workspace);
  return snapshotKey === undefined ? result : { ...result, snapshotKey };
}

function toolContext(ctx: ExecutionContext, conversation: Conversation, workspace: Workspace): Omit<ToolContext, "callId" | "signal"> {
  const { runUid, factoryUid, spawnableAgents } = ctx.assignment;
  return {
    workspace,
    platform: ctx.platform,
    run: { runUid, factoryUid, spawnableAgents },
    record: (kind, payload) => conversation.record(kind, payload),
    push: async (copy, sha) => {
      await ctx.doors.whenOpen();
      await push(copy, sha, { host: hostOf(ctx.sandbox), dir: ctx.dir, signal: ctx.signal, doors: ctx.doors, ownSandbox: (second) => ctx.ownSandbox(second) });
    },
  };
}

/** At the end of each execution, so that the next one goes on from here. One that fails costs the files, not the run. */
async function saveSnapshot(ctx: ExecutionContext, conversation: Conversation, { sandbox, copies }: Workspace): Promise<string | undefined> {
  let key: string | undefined;
  await bestEffort("save the workspace", ctx.log, async () => {
    try {
      if (!(await takeSnapshot(sandbox, copies))) return;
      await sandbox.stop(); // nobody can change the file any more
      key = (await ctx.platform.putSnapshot(await snapshotFile(ctx.dir))).snapshotKey;
    } catch (error) {
      ctx.signal.throwIfAborted();
      conversation.record("warning", { text: `The workspace could not be saved: ${error instanceof Error ? error.message : "unknown error"}` });
      throw error;
    }
  });
  ctx.signal.throwIfAborted();
  return key;
}

/** The conversation says why; nothing is started. */
function refuse(conversation: Conversation, ctx: ExecutionContext, message: string): ExecutionResult {
  conversation.record("agent_started", { session_id: newUid() });
  for (const input of ctx.assignment.inputs) conversation.record("message", { role: "user", text: input.text, message_uid: input.uid, kind: input.kind });
  conversation.record("message", { role: "assistant", text: message });
  return { outcome: "BLOCKED", message };
}

const failed = (outcome: "FAILED" | "ERROR", code: string, reason: string, message: string): ExecutionResult => ({ outcome, error: { code, message, retryable: false, reason } });
