import { setTimeout as pause } from "node:timers/promises";
import { z } from "zod";
import { objectOf } from "./rest-response.ts";
import { defineTool, type ToolContext } from "./tool.ts";
import { ToolFailure } from "./tool-failure.ts";

/**
 * The task of a dispatched run is created shortly after the run, so the lookup is retried at this interval, at most
 * this many times.
 */
const LOOKUPS_MAX = 40;
const LOOKUP_INTERVAL_MS = 250;
const NO_TASK = "This run has no task: dispatched runs have one, runs of automations do not.";

export const setStage = defineTool({
  name: "set_stage",
  action: "set_task_stage",
  category: "integration",
  description:
    "Moves the factory task that this run works on to a stage: TRIAGE, SPEC, IMPLEMENT, REVIEW, COMPLETE or CANCELLED.",
  isReadOnly: false,
  changes: "nothing",
  input: z.object({ stage: z.string().min(1) }),
  shown: ({ stage }) => ({ stage }),
  async run({ stage }, context) {
    const { factoryUid } = context.run;
    if (factoryUid === "") throw new ToolFailure("This run belongs to no factory, so it has no task.");
    const found = await findTask(context);
    if (found.status === 404) throw new ToolFailure(NO_TASK);
    const task = objectOf(found, "The task was not found");
    const uid = task["uid"];
    if (typeof uid !== "string") throw new ToolFailure("The platform did not name the task.");
    const moved = await context.platform.rest("PATCH", `/api/v1/factory/${factoryUid}/tasks/${uid}`, { stage });
    objectOf(moved, "The task was not moved");
    return { output: { task_uid: uid, stage } };
  },
});

async function findTask({ platform, run, signal }: ToolContext) {
  const path = `/api/v1/factory/${run.factoryUid}/task-by-run?run_id=${run.runUid}`;
  for (let lookup = 1; ; lookup += 1) {
    const response = await platform.rest("GET", path);
    if (response.status !== 404 || lookup === LOOKUPS_MAX) return response;
    await pause(LOOKUP_INTERVAL_MS, undefined, { signal });
  }
}
