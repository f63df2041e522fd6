import { z } from "zod";
import { omitUndefined } from "@millwright/json";
import { objectOf } from "./rest-response.ts";
import { defineTool } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

/**
 * Starts a child run through the public API, as the executing agent. The idempotency key ensures exactly one child per
 * call, even if the call is repeated.
 */
export const spawnRun = defineTool({
  name: "spawn_run",
  action: "spawn_run",
  category: "integration",
  description:
    "Starts a child run. `agent` names another agent of the same factory; without it the child is one more run of yours. The child works independently; use `wait` for its end.",
  isReadOnly: false,
  changes: "nothing",
  input: z.object({ prompt: z.string().min(1), agent: z.string().optional(), title: z.string().optional() }),
  shown: ({ prompt, agent, title }) => ({
    agent,
    title,
    prompt,
  }),
  async run({ prompt, agent, title }, { platform, run, callId }) {
    if (agent !== undefined && !run.spawnableAgents.includes(agent)) {
      throw new ToolFailure(
        `There is no agent "${agent}" to start; there ${run.spawnableAgents.length === 0 ? "is none" : `are ${run.spawnableAgents.join(", ")}`}.`,
      );
    }
    const body = omitUndefined({ prompt, parent_run_id: run.runUid, agent_name: agent, title });
    const created = objectOf(
      await platform.rest("POST", "/api/v1/agent/runs", body, { "idempotency-key": callId }),
      "The child run was not started",
    );
    const runId = created["run_id"];
    if (typeof runId !== "string") throw new ToolFailure("The platform did not name the child run.");
    return { output: { run_id: runId } };
  },
});
