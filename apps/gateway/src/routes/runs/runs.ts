import { z } from "zod";
import { omitUndefined } from "@millwright/json";
import { pathUid, queryBoolean, route, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import type { PageLinks } from "../../pages/page-links.ts";
import { Budget, budgetRecord } from "../costs/budgets.ts";
import type { FindProfiles } from "../identity/profiles.ts";
import { createdRun, idempotencyOf } from "./create-runs.ts";
import { CreatedRun } from "./create-run-schemas.ts";
import { runRecords } from "./run-record.ts";
import { RunItem, RunState } from "./run-schemas.ts";

export type RunRoutesDeps = {
  upstreams: Pick<Upstreams, "runs" | "leases">;
  findProfiles: FindProfiles;
  links: PageLinks;
};

export const runParams = z.object({ runId: pathUid("run") });

/** Returns the routes that read, retry and cancel a run, and that explain why it is queued. */
export function runRoutes({ upstreams: { runs, leases }, findProfiles, links }: RunRoutesDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/agent/runs/{runId}",
      summary: "Read a run",
      verbs: ["run.view"],
      params: runParams,
      response: RunItem,
      handler: async (input) => {
        const { run } = await runs.getRun({ runUid: input.params.runId }, onBehalf(input));
        return (await runRecords([run!], findProfiles, links, input.caller))[0]!;
      },
    }),
    route({
      method: "POST",
      path: "/agent/runs/{runId}/retry",
      summary: "Retry a run",
      extension: true,
      description:
        "Creates a run with the frozen configuration, submitted prompt and files of a terminal run, in a new conversation. `retry_of_run_id` identifies the original run. An active run is a 409, a local run a 422. A task whose current run is the original moves to the new conversation.",
      verbs: ["run.create"],
      idempotent: true,
      errors: [403, 409, 422],
      params: runParams,
      response: CreatedRun,
      handler: async (input) => {
        const key = input.request.idempotency?.key;
        const response = await runs.retryRun(
          { runUid: input.params.runId, ...idempotencyOf(input.caller, key) },
          onBehalf(input),
        );
        return createdRun(response.run!);
      },
    }),
    route({
      method: "POST",
      path: "/agent/runs/{runId}/cancel",
      summary: "Cancel a run",
      description: "Returns the run's id as a JSON string. `tree=true` also cancels every active descendant.",
      verbs: ["run.manage"],
      errors: [403, 409, 422],
      idempotent: true,
      params: runParams,
      query: z.object({ tree: queryBoolean().optional() }),
      response: z.string(),
      handler: async (input) => {
        const { run } = await runs.cancelRun(
          {
            runUid: input.params.runId,
            tree: input.query.tree ?? false,
            idempotencyKey: input.request.idempotency?.key ?? "",
          },
          onBehalf(input),
        );
        return run!.uid;
      },
    }),
    route({
      method: "GET",
      path: "/agent/runs/{runId}/queue",
      summary: "Read why a run is queued",
      extension: true,
      description:
        "The reason why the run has not started, and its position among the queued runs of its owner (team or user). `owner_position` is one more than " +
        "the number of the owner's runs that start first; it does not consider other owners. `budget_exhausted`: the run waits until the budget is raised or its next period begins.",
      verbs: ["run.view"],
      params: runParams,
      response: z.object({
        state: RunState,
        owner_position: z.int().optional(),
        reason: z.string(),
        message: z.string(),
        budgets: z.array(Budget).meta({
          description: "For a queued run: budgets that cover it and are exhausted or have reached a threshold.",
        }),
      }),
      handler: async (input) => {
        const { state, position, reason, message, budgets } = await leases.getQueueStatus(
          { runUid: input.params.runId },
          onBehalf(input),
        );
        return {
          ...{ state: state as z.input<typeof RunState>, reason, message },
          ...omitUndefined({ owner_position: position }),
          budgets: budgets.map(budgetRecord),
        };
      },
    }),
  ];
}
