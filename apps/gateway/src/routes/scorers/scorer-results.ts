import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { z } from "zod";
import type { scoring } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import {
  EXTENSION,
  cursor,
  instant,
  PageInfo,
  pageInfo,
  queryFlag,
  queryInt,
  route,
  timestamp,
  uidOrNil,
  type Route,
} from "../../rest/index.ts";
import { isoDuration, isoTime } from "../formats/json-values.ts";
import { RequestUsage } from "../runs/usage-schemas.ts";
import { passRate } from "./scorer-record.ts";
import { SCORER, scorerParams } from "./scorers.ts";

const PAGE_SIZE = 50;
const RUN_IDS_MAX = 100;

const Reason = z
  .object({ run_id: z.string(), status: z.enum(["available", "absent", "unavailable"]), reason: z.string().optional() })
  .meta({ id: "ScorerReason" });

/** A result of a scorer. `failure_code` and `failure_message` are Millwright extensions. */
const Result = z
  .object({
    run_id: z.string(),
    attempt_id: z.string(),
    attempted_at: timestamp(),
    status: z.enum(["scored", "failed", "in_flight"]),
    is_in_flight: z.boolean().meta({
      description:
        "A judge run is active for the pair. The status stays `scored` until a new score replaces the previous one.",
    }),
    classification: z.string().optional(),
    score: z.number().optional(),
    outcome: z.enum(["pass", "fail"]).nullable().meta({ description: "Computed with the scorer's current threshold." }),
    scored_at: timestamp().optional(),
    conversation_id: z.string().optional(),
    conversation_title: z.string().optional(),
    scoring_run_id: z.string().optional(),
    scoring_run_time: z.string().optional().meta({ description: "ISO 8601 duration." }),
    scoring_run_usage: RequestUsage.optional(),
    failure_code: z
      .string()
      .optional()
      .meta({ ...EXTENSION, description: "Reason why a failed attempt has no score." }),
    failure_message: z.string().optional().meta(EXTENSION),
    reasons: z.array(Reason).optional().meta({ description: "With include_reasons; texts are stored up to 8 KB." }),
  })
  .meta({ id: "ScorerResult" });

const runIds = z
  .array(z.string().trim().min(1, "must not be blank"))
  .transform((ids) => [...new Set(ids)])
  .refine((ids) => ids.length <= RUN_IDS_MAX, `at most ${RUN_IDS_MAX} distinct values`)
  .meta({ type: "array", items: { type: "string" } });

const ResultsQuery = z
  .object({
    limit: queryInt({ min: 1, max: 100 })
      .optional()
      .meta({ type: "integer", minimum: 1, maximum: 100, default: PAGE_SIZE }),
    cursor: cursor(),
    include_reasons: queryFlag(false, "Includes the judge's reasons."),
    run_id: runIds.optional().meta({
      description: `Repeatable, up to ${RUN_IDS_MAX} distinct values: the results of these runs in one page, without cursor and limit. Unknown runs are left out.`,
    }),
  })
  .refine(
    ({ run_id: ids, cursor: page, limit }) => ids === undefined || (page === undefined && limit === undefined),
    "run_id cannot be combined with cursor or limit.",
  );

const MetricsQuery = z.object({
  start_date: instant().optional().meta({ description: "Inclusive; default: 30 days before end_date." }),
  end_date: instant().optional().meta({ description: "Exclusive; default: now." }),
  group_by_period: z.enum(["day", "week", "month"]).default("day").meta({ description: "At most 365 periods." }),
  include_cost: queryFlag(false, "Includes the cost of the judge runs per period."),
});

const counts = { pass_count: z.int(), fail_count: z.int(), pass_rate: z.number().nullable() };

const Metrics = z
  .object({
    scorer_uid: z.string(),
    factory_uid: z.string(),
    team_uid: z.string(),
    as_of: timestamp(),
    start_date: timestamp(),
    end_date: timestamp(),
    group_by_period: z.enum(["day", "week", "month"]),
    period_list: z.array(z.string()).meta({ description: "The calendar start of each period, UTC." }),
    pass_rate: z
      .object({ ...counts, series: z.array(z.object(counts)) })
      .meta({ description: "`series` follows `period_list`." }),
    cost: z.object({ dollars: z.number(), series: z.array(z.number()) }).optional(),
  })
  .meta({ id: "ScorerMetrics" });

/** Returns the routes of a scorer's results and of its metrics over time. */
export function scorerResultRoutes({ scorers }: Pick<Upstreams, "scorers">): Route[] {
  return [
    route({
      method: "GET",
      path: `${SCORER}/results`,
      summary: "List a scorer's results, newest first",
      description: "The current attempt of each run.",
      verbs: ["factory.view"],
      errors: [403],
      params: scorerParams,
      query: ResultsQuery,
      response: z.object({ results: z.array(Result), page_info: PageInfo }),
      handler: async (input) => {
        const {
          limit = PAGE_SIZE,
          cursor: pageToken = "",
          include_reasons: includeReasons,
          run_id: ids = [],
        } = input.query;
        const ref = { factoryUid: input.params.uid, scorerUid: input.params.scorer_uid };
        const page = await scorers.listResults(
          { ...ref, runUids: [...new Set(ids.map(uidOrNil))], pageSize: limit, pageToken, includeReasons },
          onBehalf(input),
        );
        return {
          results: page.results.map((result) => resultRecord(result, includeReasons)),
          page_info: pageInfo(ids.length > 0 ? undefined : page.nextPageToken),
        };
      },
    }),
    route({
      method: "GET",
      path: `${SCORER}/metrics`,
      summary: "A scorer's pass rate per period",
      description: "Over the live scores in [start_date, end_date), by the time of the score.",
      verbs: ["factory.view"],
      errors: [403],
      params: scorerParams,
      query: MetricsQuery,
      response: Metrics,
      handler: async (input) => {
        const {
          start_date: start,
          end_date: end,
          group_by_period: groupByPeriod,
          include_cost: includeCost,
        } = input.query;
        const ref = { factoryUid: input.params.uid, scorerUid: input.params.scorer_uid };
        const bounds = omitUndefined({
          startDate: start && timestampFromDate(start),
          endDate: end && timestampFromDate(end),
        });
        const found = await scorers.getScorerMetrics(
          { ...ref, ...bounds, groupByPeriod, includeCost },
          onBehalf(input),
        );
        return metricsRecord(ref, found, includeCost);
      },
    }),
  ];
}

const resultRecord = (result: scoring.ScorerResult, includeReasons: boolean): z.input<typeof Result> => ({
  run_id: result.runUid,
  attempt_id: result.attemptUid,
  attempted_at: isoTime(result.attemptedAt!),
  status: result.status as "scored",
  is_in_flight: result.isInFlight,
  outcome: (result.outcome || null) as "pass" | "fail" | null,
  ...omitUndefined({
    classification: result.classification,
    score: result.score,
    scored_at: result.scoredAt && isoTime(result.scoredAt),
    conversation_id: result.conversationUid || undefined,
    conversation_title: result.conversationTitle || undefined,
    scoring_run_id: result.scoringRunUid || undefined,
    scoring_run_time: result.scoringRunTimeMs === undefined ? undefined : isoDuration(Number(result.scoringRunTimeMs)),
    scoring_run_usage: result.scoringRunUsage,
    failure_code: result.failureCode,
    failure_message: result.failureMessage,
    reasons: includeReasons
      ? [
          {
            run_id: result.runUid,
            status: (result.reasonStatus || "absent") as "absent",
            ...omitUndefined({ reason: result.reason }),
          },
        ]
      : undefined,
  }),
});

function metricsRecord(
  ref: { factoryUid: string; scorerUid: string },
  found: scoring.GetScorerMetricsResponse,
  includeCost: boolean,
): z.input<typeof Metrics> {
  const series = found.periods.map(({ passCount, failCount }) => countsOf(Number(passCount), Number(failCount)));
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const micros = found.periods.map(({ costMicros }) => Number(costMicros));
  return {
    scorer_uid: ref.scorerUid,
    factory_uid: ref.factoryUid,
    team_uid: found.teamUid,
    as_of: isoTime(found.asOf!),
    start_date: isoTime(found.startDate!),
    end_date: isoTime(found.endDate!),
    group_by_period: found.groupByPeriod as "day",
    period_list: found.periods.map(({ label }) => label),
    pass_rate: {
      ...countsOf(sum(series.map((each) => each.pass_count)), sum(series.map((each) => each.fail_count))),
      series,
    },
    cost: includeCost ? { dollars: sum(micros) / 1e6, series: micros.map((each) => each / 1e6) } : undefined,
  };
}

const countsOf = (passCount: number, failCount: number) => ({
  pass_count: passCount,
  fail_count: failCount,
  pass_rate: passRate(passCount, failCount),
});
