import { HarnessTurns, READ_ONLY_TOOLS, type Harness } from "../adapters/harness-turns.ts";
import { storeTranscript } from "../adapters/store-transcript.ts";
import { newUid } from "@millwright/ids";
import type { ExecutionResult } from "../context/execution-context.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Tool } from "../tools/tool.ts";
import type { Checkpoints } from "../workspace/checkpoints.ts";
import { runTurns } from "./run-turns.ts";
import { resultOf } from "./result.ts";
import { closeLostCalls } from "./resume.ts";
import { resumptionOf } from "./resumption.ts";
import type { RunAgentDeps } from "./agent-deps.ts";
import { savedWorkspace } from "./saved-workspace.ts";
import type { toolContext } from "./tool-context.ts";

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

export type HarnessAgentDeps = Extract<RunAgentDeps, { harness: Harness }> & {
  readonly tools: readonly Tool[];
  readonly context: ReturnType<typeof toolContext>;
  readonly checkpoints: Checkpoints;
  readonly notices: readonly string[];
  readonly lost: "worker" | "sandbox";
};

/** Runs a third-party agent program, which resumes its own session. */
export async function runHarnessAgent(
  deps: HarnessAgentDeps,
  sandbox: Sandbox,
  closeMcp: () => Promise<void>,
): Promise<ExecutionResult> {
  const { ctx, conversation, messages, checkpoints, lost } = deps;
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
      (deps.harness.adapter.readsThroughPlatform === true && READ_ONLY_TOOLS.includes(name)),
  );
  const turns = new HarnessTurns({ ...deps, tools });
  try {
    const result = resultOf(
      await runTurns({ ctx, conversation, messages, runTurn: (interrupted) => turns.run(interrupted) }, past),
    );
    ctx.phase("STOPPING");
    await Promise.all([turns.close(), closeMcp()]);
    await storeTranscript(ctx, sandbox, turns.session, conversation.events);
    const snapshotKey = await checkpoints.last();
    return { ...result, ...savedWorkspace(snapshotKey, checkpoints) };
  } finally {
    await turns.close();
  }
}
