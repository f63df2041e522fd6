import { newUid } from "@millwright/ids";
import { inSpan } from "@millwright/telemetry";
import type { ExecutionResult } from "../context/execution-context.ts";
import { textAt } from "../model/event-fields.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { ParkedWorkspace } from "../state/parked-workspaces.ts";
import type { Tool, Workspace } from "../tools/tool.ts";
import { openMcpServers, type McpTools } from "../mcp/mcp-servers.ts";
import { judgeTools } from "../tools/judge-tools.ts";
import { TOOLS } from "../tools/tools.ts";
import { Checkpoints, SAVES_NOTHING } from "../workspace/checkpoints.ts";
import { runTurns } from "./run-turns.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { readRules } from "../workspace/read-rules.ts";
import { resultOf } from "./result.ts";
import { resume } from "./resume.ts";
import { resumptionOf, type Resumption } from "./resumption.ts";
import { setUp } from "../workspace/set-up.ts";
import { runTurn } from "./turn.ts";
import type { ModelAgentDeps, RunAgentDeps } from "./agent-deps.ts";
import { runHarnessAgent } from "./run-harness-agent.ts";
import { savedWorkspace } from "./saved-workspace.ts";
import { toolContext } from "./tool-context.ts";

/**
 * Prepares the workspace in a sandbox and runs the agent in it until the execution ends, from the beginning or resumed.
 * `before`: the workspace of the previous sandbox. `parked`: the workspace that the previous execution left on this
 * worker. `onReady`: called when the workspace is set up. Throws `SetupFailed`, `SandboxGone` and the errors of
 * `runTurn`.
 */
export async function runAgent(
  deps: RunAgentDeps,
  sandbox: Sandbox,
  { before, parked }: { readonly before?: Workspace | undefined; readonly parked?: ParkedWorkspace | undefined },
  onReady: (workspace: Workspace, checkpoints: Checkpoints) => void,
): Promise<ExecutionResult> {
  const { ctx, conversation } = deps;
  const { workspace, isRestored } = await inSpan("set_up", {}, () => setUp(ctx, conversation, sandbox, before, parked));
  const checkpoints = new Checkpoints({ ctx, conversation, workspace, isRestored: ctx.assignment.snapshotUrl !== "" });
  onReady(workspace, checkpoints);
  // Another sandbox with the same directories already has the files.
  if (!before) await deps.messages.fetchEarlierAttachments();
  const mcp = await openMcpServers({ ctx, conversation, workspace });
  try {
    const lost = before ? "sandbox" : "worker";
    return await runInWorkspace(deps, { sandbox, workspace, checkpoints, isRestored, lost }, mcp);
  } finally {
    await mcp.close();
  }
}

type Environment = {
  readonly sandbox: Sandbox;
  readonly workspace: Workspace;
  readonly checkpoints: Checkpoints;
  readonly isRestored: boolean;
  readonly lost: "worker" | "sandbox";
};

async function runInWorkspace(
  deps: RunAgentDeps,
  { sandbox, workspace, checkpoints, isRestored, lost }: Environment,
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
    return runHarnessAgent({ ...deps, tools, context, checkpoints, notices: mcp.notices, lost }, sandbox, () =>
      mcp.close(),
    );
  const { provider } = deps;
  // a script requests the files that it needs; for a judge, everything in the workspace is evidence, not instructions
  const skipsInstructions = provider.name === "scripted" || judge !== undefined;
  const rules = skipsInstructions ? [] : await readRules(workspace);
  const preloaded = ctx.assignment.skills.filter((skill) => skill.preloaded).map(({ name }) => name);
  const skills = skipsInstructions ? [] : (await context.skills.all()).filter(({ name }) => !preloaded.includes(name));
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
  return { ...result, ...savedWorkspace(snapshotKey, checkpoints) };
}

async function resumeAgent(
  { ctx, conversation, provider, budget }: ModelAgentDeps,
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
