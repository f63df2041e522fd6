import { HarnessTurns, READ_ONLY_TOOLS, type Harness } from "../adapters/harness-turns.ts";
import { storeTranscript } from "../adapters/store-transcript.ts";
import { newUid } from "@millwright/ids";
import { inSpan } from "@millwright/telemetry";
import type { ExecutionContext, ExecutionResult } from "../context/execution-context.ts";
import { push } from "../git/push.ts";
import { textAt } from "../model/event-fields.ts";
import type { ModelProvider } from "../model/model-provider.ts";
import { isToRepeat } from "../model/repeats.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { hostOf } from "../sandbox/spec.ts";
import type { ParkedWorkspace } from "../state/parked-workspaces.ts";
import type { Tool, ToolContext, Workspace } from "../tools/tool.ts";
import { BackgroundCommands } from "../tools/background.ts";
import { openMcpServers, type McpTools } from "../mcp/mcp-servers.ts";
import { judgeTools } from "../tools/judge-tools.ts";
import { TOOLS } from "../tools/tools.ts";
import { Checkpoints, SAVES_NOTHING } from "../workspace/checkpoints.ts";
import { runTurns } from "./run-turns.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Messages } from "../conversation/messages.ts";
import { readRules } from "../workspace/read-rules.ts";
import { resultOf } from "./result.ts";
import { closeLostCalls, resume } from "./resume.ts";
import { resumptionOf, type Resumption } from "./resumption.ts";
import { setUp } from "../workspace/set-up.ts";
import { runTurn } from "./turn.ts";
import { skillCatalog } from "../workspace/skill-catalog.ts";
import type { TokenBudget } from "../conversation/token-budget.ts";

/** The agent: the platform's own loop with a model, or a third-party agent program. */
type Mind = { readonly provider: ModelProvider } | { readonly harness: Harness };

export type RunAgentDeps = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly messages: Messages;
  readonly budget: TokenBudget;
} & Mind;

/** The dependencies of the platform's own loop. */
export type ModelAgentDeps = Extract<RunAgentDeps, { readonly provider: ModelProvider }>;

/**
 * Prepares the workspace in a sandbox and runs the agent in it until the execution ends, from the beginning or resumed.
 * `before`: the workspace of the previous sandbox. `parked`: the workspace that the previous execution left on this
 * worker. Throws `SetupFailed`, `SandboxGone` and the errors of `runTurn`.
 */
export async function work(
  deps: RunAgentDeps,
  sandbox: Sandbox,
  { before, parked }: { readonly before?: Workspace | undefined; readonly parked?: ParkedWorkspace | undefined },
  onReady: (workspace: Workspace) => void,
): Promise<ExecutionResult> {
  const { ctx, conversation } = deps;
  const { workspace, isRestored } = await inSpan("set_up", {}, () => setUp(ctx, conversation, sandbox, before, parked));
  onReady(workspace);
  // Another sandbox with the same directories already has the files.
  if (!before) await deps.messages.fetchEarlierAttachments();
  const mcp = await openMcpServers({ ctx, conversation, workspace });
  try {
    return await workWith(deps, { sandbox, workspace, isRestored, lost: before ? "sandbox" : "worker" }, mcp);
  } finally {
    await mcp.close();
  }
}

type Surroundings = {
  readonly sandbox: Sandbox;
  readonly workspace: Workspace;
  readonly isRestored: boolean;
  readonly lost: "worker" | "sandbox";
};

async function workWith(
  deps: RunAgentDeps,
  { sandbox, workspace, isRestored, lost }: Surroundings,
  mcp: McpTools,
): Promise<ExecutionResult> {
  const { ctx, conversation, messages, budget } = deps;
  const { judge } = ctx.assignment;
  const tools = [
    ...(judge ? judgeTools(judge, "provider" in deps && deps.provider.name === "scripted") : TOOLS),
    ...mcp.tools,
  ];
  ctx.phase("RUNNING");
  const context = toolContext(ctx, conversation, workspace);
  if ("harness" in deps)
    return workWithHarness({ ...deps, tools, context, notices: mcp.notices, lost }, sandbox, () => mcp.close());
  const { provider } = deps;
  // a script requests the files that it needs; for a judge, everything in the workspace is evidence, not instructions
  const skipsInstructions = provider.name === "scripted" || judge !== undefined;
  const rules = skipsInstructions ? [] : await readRules(workspace);
  const preloaded = ctx.assignment.skills.filter((skill) => skill.preloaded).map(({ name }) => name);
  const skills = skipsInstructions ? [] : (await context.skills.all()).filter(({ name }) => !preloaded.includes(name));
  const checkpoints = new Checkpoints({ ctx, conversation, workspace, isRestored: ctx.assignment.snapshotUrl !== "" });
  // Judges are not resumed: another attempt starts with the evaluated workspace.
  const saving = judge ? SAVES_NOTHING : checkpoints;
  const past = conversation.hasStarted ? resumptionOf(conversation.ofExecution, tools) : undefined;
  if (past) {
    const hasWritten = await resumeAgent(deps, past, { context, tools, isRestored, lost });
    if (hasWritten) saving.note("if_cheap");
  } else conversation.record("agent_started", { session_id: newUid(), workspace: sandbox.workspace });
  const steps = new Set(past?.stepIds);
  const turn = {
    ctx,
    provider,
    conversation,
    tools,
    context,
    rules,
    skills,
    notices: mcp.notices,
    budget,
    steps,
    checkpoints: saving,
    takeMessages: () => messages.take(),
  };
  const result = resultOf(
    await runTurns({ ctx, conversation, messages, runTurn: (interrupted) => runTurn(turn, interrupted) }, past),
  );
  ctx.phase("STOPPING");
  await mcp.close(); // after this, nothing changes the workspace
  if (judge) return result;
  const snapshotKey = await checkpoints.last();
  if (checkpoints.end && (workspace.copies.length > 0 || checkpoints.end.snapshotKey !== ""))
    ctx.park({ copies: workspace.copies, ...checkpoints.end });
  return { ...result, ...workspaceAt(snapshotKey, checkpoints) };
}

type HarnessAgentDeps = Extract<RunAgentDeps, { harness: Harness }> & {
  readonly tools: readonly Tool[];
  readonly context: ReturnType<typeof toolContext>;
  readonly notices: readonly string[];
  readonly lost: "worker" | "sandbox";
};

/** Runs a third-party agent program, which resumes its own session. */
async function workWithHarness(
  deps: HarnessAgentDeps,
  sandbox: Sandbox,
  closeMcp: () => Promise<void>,
): Promise<ExecutionResult> {
  const { ctx, conversation, messages, harness, context, lost } = deps;
  const checkpoints = new Checkpoints({
    ctx,
    conversation,
    workspace: context.workspace,
    isRestored: ctx.assignment.snapshotUrl !== "",
  });
  const past = conversation.hasStarted ? resumptionOf(conversation.ofExecution, deps.tools) : undefined;
  const begun = { session_id: newUid(), workspace: sandbox.workspace };
  if (past) {
    closeLostCalls(conversation, lost);
    conversation.record("agent_resumed", {
      ...begun,
      lost,
      text: `The ${lost} you worked in was lost; you continue in a new one.`,
      repeats: [],
    });
  } else conversation.record("agent_started", begun);
  const tools = deps.tools.filter(
    ({ name }) =>
      HARNESS_TOOLS.includes(name) ||
      name.startsWith("mcp__") ||
      (harness.adapter.readsThroughPlatform === true && READ_ONLY_TOOLS.includes(name)),
  );
  const turns = new HarnessTurns({ ...deps, tools, checkpoints });
  try {
    const result = resultOf(
      await runTurns({ ctx, conversation, messages, runTurn: (interrupted) => turns.run(interrupted) }, past),
    );
    ctx.phase("STOPPING");
    await Promise.all([turns.close(), closeMcp()]);
    await storeTranscript(ctx, sandbox, turns.session, conversation.events);
    const snapshotKey = await checkpoints.last();
    return { ...result, ...workspaceAt(snapshotKey, checkpoints) };
  } finally {
    await turns.close();
  }
}

/**
 * Returns where the final workspace is stored: in a snapshot, or nowhere because it equals fresh clones. Returns
 * neither if it could not be saved.
 */
const workspaceAt = (
  snapshotKey: string | undefined,
  { end }: Pick<Checkpoints, "end">,
): Pick<ExecutionResult, "snapshotKey" | "isWorkspaceUnchanged"> =>
  snapshotKey === undefined ? (end ? { isWorkspaceUnchanged: true } : {}) : { snapshotKey };

/** The platform tools for a harness, which has its own file and shell tools. */
const HARNESS_TOOLS: readonly string[] = [
  "plan",
  "artifact",
  "screenshot",
  "external_reference",
  "read_skill",
  "pull_request",
  "spawn_run",
  "wait",
  "set_stage",
  "ask_user",
];

/** Saves the workspace of an execution whose sandbox ended too often. */
export const saveAfterCrash = (deps: {
  ctx: ExecutionContext;
  conversation: Conversation;
  workspace: Workspace;
}): Promise<string | undefined> =>
  new Checkpoints({ ...deps, isRestored: deps.ctx.assignment.snapshotUrl !== "" }).last();

async function resumeAgent(
  { ctx, conversation, provider, budget }: Extract<RunAgentDeps, { provider: ModelProvider }>,
  past: Resumption,
  facts: {
    context: ReturnType<typeof toolContext>;
    tools: readonly Tool[];
    isRestored: boolean;
    lost: "worker" | "sandbox";
  },
): Promise<boolean> {
  const { context, ...rest } = facts;
  const { workspace } = context;
  workspace.cwd = shellDirectory(past.cwd, conversation, workspace);
  const hasWritten = await resume(
    { conversation, repeatsSteps: provider.name === "scripted", context: { ...context, signal: ctx.signal }, ...rest },
    past,
  );
  if (rest.lost === "sandbox") return hasWritten; // this attempt has already counted its calls
  for (const { callId, modelId, usage } of past.uncounted) {
    budget.spend(usage);
    await ctx.platform.reportUsage({ callId, modelId, usage });
  }
  return hasWritten;
}

/** Returns the shell's directory in this workspace. Without a sandbox, each attempt has a different workspace path. */
function shellDirectory(cwd: string, conversation: Conversation, workspace: Workspace): string {
  const begun = conversation.ofExecution.findLast(
    ({ kind, payload }) =>
      (kind === "agent_started" || kind === "agent_resumed") && textAt(payload, "workspace") !== "",
  );
  const root = textAt(begun?.payload ?? {}, "workspace");
  if (cwd !== "" && root === workspace.sandbox.workspace) return cwd; // inside a sandbox, the path is the same
  return root !== "" && `${cwd}/`.startsWith(`${root}/`)
    ? workspace.sandbox.workspace + cwd.slice(root.length)
    : workspace.base;
}

/** Returns the context of tools in a workspace. */
export function toolContext(
  ctx: ExecutionContext,
  conversation: Conversation,
  workspace: Workspace,
): Omit<ToolContext, "callId" | "signal"> {
  const { runUid, factoryUid, spawnableAgents, skills } = ctx.assignment;
  return {
    workspace,
    platform: ctx.platform,
    run: { runUid, factoryUid, spawnableAgents },
    skills: skillCatalog(skills, workspace),
    background: new BackgroundCommands(),
    isRepeated: (callId) => conversation.ofExecution.some((event) => isToRepeat(event, callId)),
    record: (kind, payload) => conversation.record(kind, payload),
    push: async (copy, sha) => {
      await ctx.gate.whenOpen();
      await push(copy, sha, {
        host: hostOf(ctx.sandbox),
        agent: workspace.sandbox,
        dir: ctx.dir,
        signal: ctx.signal,
        gate: ctx.gate,
        outbound: ctx.outbound,
        ownSandbox: (second) => ctx.ownSandbox(second),
      });
    },
  };
}
