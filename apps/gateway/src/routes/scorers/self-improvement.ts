import { z } from "zod";
import type { scoring } from "@millwright/contracts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { route, timestamp, type Route } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";
import { SCORER, scorerParams } from "./scorers.ts";

const SelfImprovementSettings = z
  .object({
    failure_threshold: z
      .int()
      .min(1)
      .max(1000)
      .default(25)
      .meta({ description: "Unreviewed failures of one agent that start a run." }),
    failure_age_days: z
      .int()
      .min(1)
      .max(90)
      .default(7)
      .meta({ description: "Age of the oldest unreviewed failure that starts a run." }),
    runs_per_week: z.int().min(1).max(50).default(5).meta({ description: "Runs in any 7 days." }),
    cost_limit_usd: z.number().min(0.000_001).max(1000).default(5).meta({ description: "Cost limit of each run." }),
  })
  .meta({ id: "SelfImprovementSettings" });

const SelfImprovement = SelfImprovementSettings.extend({
  scorer_uid: z.string(),
  unreviewed_failures: z.int(),
  last_run_id: z.string().nullable(),
  last_run_at: timestamp().nullable(),
  created_at: timestamp(),
  updated_at: timestamp(),
}).meta({ id: "SelfImprovement" });

/**
 * Returns the routes of self-improvement: runs that propose changes to an agent from the failures that a scorer found.
 * Millwright extension.
 */
export function selfImprovementRoutes({ scorers }: Pick<Upstreams, "scorers">): Route[] {
  const path = `${SCORER}/self_improvement`;
  const refOf = ({ uid, scorer_uid: scorerUid }: z.output<typeof scorerParams>) => ({ factoryUid: uid, scorerUid });
  return [
    route({
      method: "GET",
      path,
      extension: true,
      summary: "Read a scorer's self-improvement configuration",
      description: "404 while self-improvement is off.",
      verbs: ["factory.view"],
      errors: [403],
      params: scorerParams,
      response: SelfImprovement,
      handler: async (input) =>
        record((await scorers.getSelfImprovement(refOf(input.params), onBehalf(input))).selfImprovement!),
    }),
    route({
      method: "PUT",
      path,
      extension: true,
      summary: "Turn self-improvement on, or replace its configuration",
      description: "Absent members get their defaults. Requires a user's key.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      params: scorerParams,
      body: SelfImprovementSettings,
      response: SelfImprovement,
      handler: async (input) => {
        const { factoryUid, scorerUid } = refOf(input.params);
        const {
          failure_threshold: failureThreshold,
          failure_age_days: failureAgeDays,
          runs_per_week: runsPerWeek,
          cost_limit_usd: dollars,
        } = input.body;
        const selfImprovement = {
          scorerUid,
          failureThreshold,
          failureAgeDays,
          runsPerWeek,
          costLimitMicros: BigInt(Math.round(dollars * 1e6)),
        };
        return record(
          (await scorers.putSelfImprovement({ factoryUid, selfImprovement }, onBehalf(input))).selfImprovement!,
        );
      },
    }),
    route({
      method: "DELETE",
      path,
      extension: true,
      summary: "Turn self-improvement off",
      description: "Deletes the configuration. Idempotent.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      status: 204,
      params: scorerParams,
      handler: async (input) => {
        await scorers.deleteSelfImprovement(refOf(input.params), onBehalf(input));
      },
    }),
  ];
}

const record = (config: scoring.SelfImprovement): z.output<typeof SelfImprovement> => ({
  scorer_uid: config.scorerUid,
  failure_threshold: config.failureThreshold,
  failure_age_days: config.failureAgeDays,
  runs_per_week: config.runsPerWeek,
  cost_limit_usd: Number(config.costLimitMicros) / 1e6,
  unreviewed_failures: config.unreviewedFailures,
  last_run_id: config.lastRunUid || null,
  last_run_at: config.lastRunAt ? isoTime(config.lastRunAt) : null,
  created_at: isoTime(config.createdAt!),
  updated_at: isoTime(config.updatedAt!),
});
