import { z } from "zod";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { route, type Route } from "../../rest/index.ts";
import { runParams } from "../runs/runs.ts";
import { conversationParams } from "./conversation-params.ts";

/** Returns the routes that end the current turn of a run. */
export function interruptRoutes({ runs }: Pick<Upstreams, "runs">): Route[] {
  return [
    route({
      method: "POST",
      path: "/agent/runs/{runId}/interrupt",
      summary: "End the current turn of a run",
      description:
        "The run continues and accepts follow-ups. Without a follow-up it becomes BLOCKED after its idle timeout. Only for runs on the platform's own harness.",
      verbs: ["run.manage"],
      errors: [400, 403, 409, 422],
      params: runParams,
      status: 202,
      response: z.object({ run_id: z.string() }),
      handler: async (input) => ({
        run_id: (await runs.interruptRun({ runUid: input.params.runId }, onBehalf(input))).runUid,
      }),
    }),
    route({
      method: "POST",
      path: "/agent/conversations/{conversationId}/interrupt",
      summary: "End the current turn of the newest run of a conversation",
      verbs: ["run.manage"],
      errors: [400, 403, 409, 422],
      params: conversationParams,
      status: 202,
      response: z.object({ run_id: z.string() }),
      handler: async (input) => ({
        run_id: (await runs.interruptRun({ conversationUid: input.params.conversationId }, onBehalf(input))).runUid,
      }),
    }),
  ];
}
