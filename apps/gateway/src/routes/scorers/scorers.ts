import { z } from "zod";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { instant, pathUid, queryFlag, queryInt, route, type Route } from "../../rest/index.ts";
import { factoryParams } from "../factories/factories.ts";
import { listedScorerRecord, newScorer, scorerRecord, scorerUpdate } from "./scorer-record.ts";
import { ListedScorer, NewScorer, Scorer, ScorerPatch } from "./scorer-schemas.ts";

export const scorerParams = factoryParams.extend({ scorer_uid: pathUid("scorer") });

const BASE = "/factory/{uid}/scorers";
export const SCORER = `${BASE}/{scorer_uid}`;

const RECENT_OUTCOMES = 50;
const LEGACY_DATE =
  "Legacy: validated, but without effect. `start_date` and `end_date` must both be sent, the start before the end.";

const ListQuery = z
  .object({
    include_managed: queryFlag(false, "Includes scorers that benchmarks manage."),
    recent_outcomes_limit: queryInt({ min: 1, max: 100 })
      .default(RECENT_OUTCOMES)
      .meta({
        ...{ type: "integer", minimum: 1, maximum: 100, default: RECENT_OUTCOMES },
        description: "The number of most recent live scores that `pass_rate_summary` covers.",
      }),
    start_date: instant().optional().meta({ description: LEGACY_DATE }),
    end_date: instant().optional().meta({ description: LEGACY_DATE }),
  })
  .refine(
    ({ start_date: start, end_date: end }) => (start === undefined) === (end === undefined),
    "start_date and end_date must be sent together.",
  )
  .refine(
    ({ start_date: start, end_date: end }) => !start || !end || start < end,
    "start_date must be before end_date.",
  );

/** Returns the routes of a factory's scorers. */
export function scorerRoutes({ scorers }: Pick<Upstreams, "scorers">): Route[] {
  return [
    route({
      method: "POST",
      path: BASE,
      summary: "Create a scorer",
      description:
        "Creates an active scorer; scoring starts with the next run that finishes. At least one label must reach the threshold, and at least one must not. " +
        "`selected_agents` requires agents, `all_agents` excludes them. Turning self-improvement on requires a person's key.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      idempotent: true,
      status: 201,
      params: factoryParams,
      body: NewScorer,
      response: Scorer,
      handler: async (input) => {
        const { scorer } = await scorers.createScorer(
          { scorer: newScorer(input.params.uid, input.body), idempotencyKey: input.request.idempotency?.key ?? "" },
          onBehalf(input),
        );
        return scorerRecord(scorer!);
      },
    }),
    route({
      method: "GET",
      path: BASE,
      summary: "List a factory's scorers with their statistics",
      description: "By name.",
      verbs: ["factory.view"],
      errors: [403],
      params: factoryParams,
      query: ListQuery,
      response: z.object({ scorers: z.array(ListedScorer) }),
      handler: async (input) => {
        const { include_managed: includeManaged, recent_outcomes_limit: recentOutcomesLimit } = input.query;
        const found = await scorers.listScorers(
          { factoryUid: input.params.uid, includeManaged, recentOutcomesLimit },
          onBehalf(input),
        );
        return { scorers: found.scorers.map(listedScorerRecord) };
      },
    }),
    route({
      method: "PATCH",
      path: SCORER,
      summary: "Change a scorer",
      description:
        "Changes exactly the members that are sent, at least one, and increments the version. Attempts in progress keep the configuration they started with. " +
        "`scope_mode`, `agents` and `agent_uids` replace the whole scope; without `scope_mode` the mode is unchanged and must match the agents.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      params: scorerParams,
      body: ScorerPatch,
      response: Scorer,
      handler: async (input) => {
        const { uid: factoryUid, scorer_uid: uid } = input.params;
        return scorerRecord(
          (await scorers.updateScorer(scorerUpdate({ factoryUid, uid }, input.body), onBehalf(input))).scorer!,
        );
      },
    }),
    route({
      method: "DELETE",
      path: SCORER,
      summary: "Delete a scorer permanently",
      description:
        "Deletes its attempts, scores, reasons and self-improvement data too, and cancels its judge runs. Effective immediately.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      status: 204,
      params: scorerParams,
      handler: async (input) => {
        await scorers.deleteScorer(
          { factoryUid: input.params.uid, scorerUid: input.params.scorer_uid },
          onBehalf(input),
        );
      },
    }),
  ];
}
