import { z } from "zod";
import type { scoring } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { onBehalf } from "../../clients/upstreams.ts";
import {
  cursor,
  nonzeroUuid,
  PageInfo,
  pageInfo,
  pageLimit,
  pathUid,
  queryList,
  queryText,
  route,
  uidOrNil,
  type Route,
} from "../../rest/index.ts";
import { configurationMessage } from "./benchmark-records.ts";
import { benchmarkRunRecord } from "./benchmark-run-record.ts";
import { Comparison } from "./benchmark-comparison-schemas.ts";
import { BenchmarkResults } from "./benchmark-result-schemas.ts";
import { BenchmarkRun, Launch, Launched, ResultsInclude, RunInclude } from "./benchmark-run-schemas.ts";
import { BenchmarkRunState } from "./benchmark-state-schemas.ts";
import { SUITE, suiteParams, type BenchmarkRoutesDeps } from "./benchmarks.ts";

/** A launch resolves repository refs to commits with requests to code hosts. */
const LAUNCH_TIMEOUT_MS = 60_000;

export const benchmarkRunParams = suiteParams.extend({ run_uid: pathUid("benchmark_run") });
export const BENCHMARK_RUN = `${SUITE}/runs/{run_uid}`;

export const benchmarkRunRef = ({
  factory_uid: factoryUid,
  suite_uid: suiteUid,
  run_uid: runUid,
}: z.output<typeof benchmarkRunParams>) => ({ factoryUid, suiteUid, runUid });

const include = queryList(RunInclude)
  .default([])
  .meta({ description: "Adds the settings frozen at launch, aggregate results or the creator." });
type Included = z.output<typeof include>;

/** Returns the routes of benchmark runs and their results. */
export function benchmarkRunRoutes({ upstreams: { benchmarks }, findProfiles }: BenchmarkRoutesDeps): Route[] {
  const records = async (runs: readonly scoring.BenchmarkRun[], included: Included) => {
    const creators = await findProfiles(
      included.includes("creator") ? [...new Set(runs.map(({ creatorUid }) => creatorUid))].filter(Boolean) : [],
    );
    return runs.map((run) => benchmarkRunRecord(run, creators));
  };
  /** Removes `creator`: the gateway reads profiles itself, the scoring service has none. */
  const withoutCreator = (included: Included): string[] => included.filter((name) => name !== "creator");
  return [
    route({
      method: "POST",
      path: `${SUITE}/runs`,
      summary: "Launch a benchmark run",
      description:
        "Freezes the suite's current version, its configurations, agents, scorers and repository commits, and starts tasks × configurations × repetitions trials. " +
        "Each successful request creates a new run. Clients must not retry automatically: every problem has `x-should-retry: false`. An Idempotency-Key makes a repeated request safe; " +
        "without one, list the runs if the outcome is unknown.",
      verbs: ["run.create"],
      errors: [403, 409],
      idempotent: true,
      automaticRetry: "never",
      timeoutMs: LAUNCH_TIMEOUT_MS,
      status: 201,
      params: suiteParams,
      body: Launch,
      response: Launched,
      handler: async (input) => {
        const { factory_uid: factoryUid, suite_uid: suiteUid } = input.params;
        const { body } = input;
        const launched = await benchmarks.launchBenchmark(
          {
            ...{ factoryUid, suiteUid },
            repetitionCount: body.repetition_count,
            configurations: (body.configurations ?? []).map(configurationMessage),
            hasConfigurations: body.configurations !== undefined,
            scorerSelection: (body.scorer_selection ?? []).map(String),
            taskUids: body.tasks ?? [],
            hasTasks: body.tasks !== undefined,
            parallelism: body.parallelism ?? 0,
            idempotencyKey: input.request.idempotency?.key ?? "",
            ...omitUndefined({ historicalReplayRunUid: body.historical_replay_run_uid }),
          },
          onBehalf(input, { timeoutMs: LAUNCH_TIMEOUT_MS }),
        );
        return { uid: launched.uid, state: launched.state as "pending" };
      },
    }),
    route({
      method: "GET",
      path: `${SUITE}/runs`,
      summary: "List the benchmark runs of a suite, newest first",
      description: "Runs stay readable after their suite is deleted. An unknown suite returns an empty list.",
      verbs: ["factory.view"],
      errors: [403],
      params: suiteParams.extend({ suite_uid: z.string() }),
      query: z.object({
        state: queryList(BenchmarkRunState).default([]),
        limit: pageLimit(50),
        cursor: cursor(),
        include,
      }),
      response: z.object({ data: z.array(BenchmarkRun), page_info: PageInfo }),
      handler: async (input) => {
        const { state: states, limit, cursor: pageToken = "", include: included } = input.query;
        const ref = { factoryUid: input.params.factory_uid, suiteUid: uidOrNil(input.params.suite_uid) };
        const page = await benchmarks.listBenchmarkRuns(
          { ...ref, states, pageSize: limit, pageToken, include: withoutCreator(included) },
          onBehalf(input),
        );
        return { data: await records(page.runs, included), page_info: pageInfo(page.nextPageToken) };
      },
    }),
    route({
      method: "GET",
      path: BENCHMARK_RUN,
      summary: "Read a benchmark run with its progress",
      verbs: ["factory.view"],
      errors: [403],
      params: benchmarkRunParams,
      query: z.object({ include }),
      response: BenchmarkRun,
      handler: async (input) => {
        const { include: included } = input.query;
        const { run } = await benchmarks.getBenchmarkRun(
          { ...benchmarkRunRef(input.params), include: withoutCreator(included) },
          onBehalf(input),
        );
        return (await records([run!], included))[0]!;
      },
    }),
    route({
      method: "POST",
      path: `${BENCHMARK_RUN}/cancel`,
      summary: "Cancel a benchmark run",
      description: "Cancels the active trials and their runs. A terminal benchmark run is a 400.",
      verbs: ["run.manage"],
      errors: [400, 403],
      params: benchmarkRunParams,
      response: BenchmarkRun,
      handler: async (input) => {
        const { run } = await benchmarks.cancelBenchmarkRun(benchmarkRunRef(input.params), onBehalf(input));
        return (await records([run!], []))[0]!;
      },
    }),
    route({
      method: "GET",
      path: `${BENCHMARK_RUN}/results`,
      summary: "The results of a benchmark run",
      description: "Outcomes, coverage and costs; provisional until the run has finished. Not paginated.",
      verbs: ["factory.view"],
      errors: [403],
      params: benchmarkRunParams,
      query: z.object({
        task_uid: queryList(nonzeroUuid()).default([]).meta({ description: "Selects trials." }),
        tag: queryList(queryText())
          .default([])
          .meta({ description: "Selects trials of tasks with any of these tags." }),
        configuration_uid: queryList(nonzeroUuid()).default([]).meta({ description: "Limits metric rows only." }),
        scorer_uid: queryList(nonzeroUuid()).default([]).meta({ description: "Limits metric rows only." }),
        include: queryList(ResultsInclude).default([]).meta({ description: "Adds metric arrays." }),
      }),
      response: BenchmarkResults,
      handler: async (input) => {
        const {
          task_uid: taskUids,
          tag: tags,
          configuration_uid: configurationUids,
          scorer_uid: scorerUids,
          include: included,
        } = input.query;
        const filters = { taskUids, tags, configurationUids, scorerUids, include: [...new Set(included)] };
        const { results } = await benchmarks.getBenchmarkResults(
          { ...benchmarkRunRef(input.params), ...filters },
          onBehalf(input),
        );
        return results as unknown as z.input<typeof BenchmarkResults>;
      },
    }),
    route({
      method: "GET",
      path: `${BENCHMARK_RUN}/compare`,
      summary: "Compare two benchmark runs of a suite",
      extension: true,
      description: "Compares the tasks that both runs have.",
      verbs: ["factory.view"],
      errors: [403],
      params: benchmarkRunParams,
      query: z.object({ other_run_uid: nonzeroUuid() }),
      response: Comparison,
      handler: async (input) => {
        const { comparison } = await benchmarks.compareBenchmarkRuns(
          { ...benchmarkRunRef(input.params), otherRunUid: input.query.other_run_uid },
          onBehalf(input),
        );
        return comparison as unknown as z.input<typeof Comparison>;
      },
    }),
  ];
}
