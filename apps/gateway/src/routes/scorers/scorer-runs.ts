import { z } from "zod";
import type { scoring } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { EXTENSION, json, pathUid, route, timestamp, uuidList, type Route } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";
import { runParams } from "../runs/runs.ts";

/** A request starts up to 100 judge runs. */
const DISPATCH_TIMEOUT_MS = 60_000;
const VERDICTS_MAX = 100;

const factory = { factory_uid: pathUid("factory") };
const run = { run_id: pathUid("run") };

const DispatchOutcomes = z.object({
  results: z.array(
    z
      .object({
        scorer_uid: z.string(),
        run_id: z.string(),
        status: z.enum(["dispatched", "failed"]),
        scoring_run_id: z.string().optional(),
        error: z.string().optional(),
      })
      .meta({ id: "ScorerDispatchOutcome" }),
  ),
});

/** A score of a run. `failure_code` is a Millwright extension. */
const RunScore = z
  .object({
    scorer_id: z.int(),
    scorer_uid: z.string(),
    scorer_name: z.string(),
    attempt_status: z.enum(["in_flight", "scored", "failed"]),
    is_in_flight: z.boolean(),
    attempted_at: timestamp(),
    trigger_source: z
      .enum(["automatic", "manual", "benchmark"])
      .meta({ description: "`benchmark` extends the published API: scored as a trial of a benchmark run." }),
    classification: z.string().optional(),
    scored_at: timestamp().optional(),
    scoring_run_id: z.string().optional(),
    failure_code: z
      .string()
      .optional()
      .meta({ ...EXTENSION, description: "Reason why a failed attempt has no score." }),
  })
  .meta({ id: "RunScore" });

const ScorerId = z.union([z.int(), z.string().min(1)]).meta({ description: "The scorer's uid, or its numeric id." });
const Verdicts = z
  .object({
    results: z
      .array(
        z.object({
          scorer_id: ScorerId,
          classification: z
            .string()
            .nullable()
            .optional()
            .meta({ description: "A label that the scorer had when the judge started." }),
          reason: z.string().nullable().optional().meta({ description: "Stored up to 8 KB." }),
          failed: z.boolean().optional().meta({ description: "The judge could not decide." }),
        }),
      )
      .min(1)
      .max(VERDICTS_MAX),
  })
  .meta({ id: "ReportScoresRequest" });
const VerdictOutcomes = z
  .object({
    results: z.array(
      z.object({
        scorer_id: z.union([z.int(), z.string()]),
        status: z.enum(["accepted", "rejected"]),
        error: z.string().optional(),
      }),
    ),
  })
  .meta({ id: "ReportedScores" });

const DISPATCH =
  "Ignores the cool-down, sampling, age and earlier scores. Every pair is checked before any scoring starts: the runs and scorers must belong to the factory, " +
  "each run must have a conversation, be executed by an agent of the factory and not be a judge itself, and each scorer must cover the run's agent and not be managed by a benchmark. " +
  "One invalid pair rejects the whole request. A valid request returns one outcome per pair, not scores.";

/** Returns the routes that score runs manually, list the scores of a run, and report the verdicts of a judge run. */
export function scorerRunRoutes({ scorers }: Pick<Upstreams, "scorers">): Route[] {
  const dispatching = {
    method: "POST",
    description: DISPATCH,
    verbs: ["factory.manage", "run.view"],
    errors: [403, 409],
    automaticRetry: "not_after_5xx",
    timeoutMs: DISPATCH_TIMEOUT_MS,
    response: DispatchOutcomes,
  } as const;
  const dispatch = async (
    request: { factoryUid: string; scorerUids: string[]; runUids: string[] },
    input: Parameters<typeof onBehalf>[0],
  ) => ({
    results: (await scorers.dispatchScoring(request, onBehalf(input, { timeoutMs: DISPATCH_TIMEOUT_MS }))).results.map(
      outcomeRecord,
    ),
  });
  return [
    route({
      ...dispatching,
      path: "/factory/{factory_uid}/runs/{run_id}/scorer_dispatch",
      summary: "Score a run with chosen scorers",
      params: z.object({ ...factory, ...run }),
      body: z.object({ scorer_uids: uuidList() }),
      handler: (input) =>
        dispatch(
          { factoryUid: input.params.factory_uid, scorerUids: input.body.scorer_uids, runUids: [input.params.run_id] },
          input,
        ),
    }),
    route({
      ...dispatching,
      path: "/factory/{factory_uid}/scorers/{scorer_uid}/dispatch",
      summary: "Score chosen runs with a scorer",
      params: z.object({ ...factory, scorer_uid: pathUid("scorer") }),
      body: z.object({ run_ids: uuidList() }),
      handler: (input) =>
        dispatch(
          { factoryUid: input.params.factory_uid, scorerUids: [input.params.scorer_uid], runUids: input.body.run_ids },
          input,
        ),
    }),
    route({
      method: "GET",
      path: "/factory/runs/{run_id}/scores",
      summary: "List the scores of a run",
      description:
        "The current attempt of each scorer that attempted the run, most recent first. Needs only the right to view the run.",
      verbs: ["run.view"],
      params: z.object(run),
      response: z.object({ run_id: z.string(), scores: z.array(RunScore) }),
      handler: async (input) => {
        const { run_id: runUid } = input.params;
        return {
          run_id: runUid,
          scores: (await scorers.listRunScores({ runUid }, onBehalf(input))).scores.map(scoreRecord),
        };
      },
    }),
    route({
      method: "POST",
      path: "/agent/runs/{runId}/scores",
      summary: "Report the verdicts of a judge run",
      description:
        "Only with the run's own token; any other credential gets the same 404 as for an absent run. Each verdict is processed independently.",
      params: runParams,
      body: Verdicts,
      response: VerdictOutcomes,
      responses: { 206: { description: "At least one verdict was rejected.", schema: VerdictOutcomes } },
      handler: async (input) => {
        const { runId: runUid } = input.params;
        if (input.caller.run?.runUid !== runUid) throw notFound("run");
        const { results } = input.body;
        const verdicts = results.map(({ scorer_id: id, classification, reason, failed = false }) => ({
          scorerId: String(id),
          failed,
          ...omitUndefined({ classification: classification ?? undefined, reason: reason ?? undefined }),
        }));
        const reported = await scorers.reportScores({ runUid, verdicts }, onBehalf(input));
        const outcomes = reported.results.map((each) => verdictRecord(each, results));
        return outcomes.some(({ status }) => status === "rejected")
          ? json(206, { results: outcomes })
          : { results: outcomes };
      },
    }),
  ];
}

const outcomeRecord = ({ scorerUid, runUid, status, scoringRunUid, error }: scoring.DispatchOutcome) => ({
  scorer_uid: scorerUid,
  run_id: runUid,
  status: status as "dispatched",
  ...omitUndefined({ scoring_run_id: scoringRunUid || undefined, error: error || undefined }),
});

const scoreRecord = (score: scoring.RunScore): z.input<typeof RunScore> => ({
  scorer_id: Number(score.scorerId),
  scorer_uid: score.scorerUid,
  scorer_name: score.scorerName,
  attempt_status: score.attemptStatus as "scored",
  is_in_flight: score.isInFlight,
  attempted_at: isoTime(score.attemptedAt!),
  trigger_source: score.triggerSource as "automatic",
  ...omitUndefined({
    classification: score.classification,
    scored_at: score.scoredAt && isoTime(score.scoredAt),
    scoring_run_id: score.scoringRunUid || undefined,
    failure_code: score.failureCode,
  }),
});

/** Returns the outcome of a verdict with the scorer id in the form in which the judge sent it (uid or number). */
const verdictRecord = (
  { scorerId, status, error }: scoring.VerdictOutcome,
  verdicts: readonly { scorer_id: string | number }[],
) => ({
  scorer_id: verdicts.find(({ scorer_id: id }) => String(id) === scorerId)?.scorer_id ?? scorerId,
  status: status as "accepted" | "rejected",
  ...omitUndefined({ error: error || undefined }),
});
