import { z } from "zod";
import type { scoring } from "@millwright/contracts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import {
  cursor,
  nonzeroUuid,
  PageInfo,
  pageInfo,
  pathUid,
  queryInt,
  queryList,
  rejectedParameter,
  route,
  type Route,
} from "../../rest/index.ts";
import { Trial, TrialInclude } from "./benchmark-trial-schemas.ts";
import { BENCHMARK_RUN, benchmarkRunParams, benchmarkRunRef } from "./benchmark-runs.ts";
import { textStreamReply } from "../formats/text-stream.ts";
import { CSV_HEADER, csvRows, ndjsonRow } from "./trial-export.ts";

const PAGE_SIZE = 50;
const EXPORT_PAGE_SIZE = 100;

/** `queued` is a synonym of `pending` and a Millwright extension. */
const TrialState = z.enum(["pending", "running", "succeeded", "failed", "cancelled", "queued"]);
const NO_SCORER_FILTER = "Trials cannot be filtered by scorer; use the results.";
const NO_SELECTION = "One trial takes no selection or pagination parameters.";
const noScorerFilter = {
  scorer_uid: rejectedParameter(NO_SCORER_FILTER),
  scorer_id: rejectedParameter(NO_SCORER_FILTER),
  scorer: rejectedParameter(NO_SCORER_FILTER),
};
const include = queryList(TrialInclude)
  .default([])
  .meta({ description: "`results` adds scores and metrics, `details` also the execution history." });

/** The `include` names that each public name expands to. */
const EXPANDED: Readonly<Record<z.output<typeof TrialInclude>, readonly string[]>> = {
  scores: ["scores"],
  metrics: ["metrics"],
  execution_history: ["execution_history"],
  results: ["scores", "metrics"],
  details: ["scores", "metrics", "execution_history"],
};
const included = (names: z.output<typeof include>): string[] => [...new Set(names.flatMap((name) => EXPANDED[name]))];

const ListQuery = z
  .object({
    configuration_uid: queryList(nonzeroUuid()).optional(),
    state: queryList(TrialState).optional(),
    agent_run_id: nonzeroUuid().optional().meta({
      description:
        "Returns the trial with an attempt that was this run, with matched_attempt_number. Can be combined only with include, and with a limit of 1.",
    }),
    limit: queryInt({ min: 1, max: 100 })
      .optional()
      .meta({ type: "integer", minimum: 1, maximum: 100, default: PAGE_SIZE }),
    cursor: cursor(),
    include,
    ...noScorerFilter,
  })
  .refine(
    ({ agent_run_id: runId, configuration_uid: configurations, state, limit = 1, cursor: page }) =>
      runId === undefined || (!configurations && !state && page === undefined && limit === 1),
    "agent_run_id can be combined only with include, and with a limit of 1.",
  );

const rejectedSelection = () => rejectedParameter(NO_SELECTION);
const OneQuery = z.object({
  include,
  configuration_uid: rejectedSelection(),
  state: rejectedSelection(),
  agent_run_id: rejectedSelection(),
  task_uid: rejectedSelection(),
  tag: rejectedSelection(),
  limit: rejectedSelection(),
  cursor: rejectedSelection(),
  scorer_uid: rejectedSelection(),
  scorer_id: rejectedSelection(),
  scorer: rejectedSelection(),
});

/** Returns the routes of trials of benchmark runs. The export is a Millwright extension. */
export function benchmarkTrialRoutes({ benchmarks }: Pick<Upstreams, "benchmarks">): Route[] {
  return [
    route({
      method: "GET",
      path: `${BENCHMARK_RUN}/trials`,
      summary: "List the trials of a benchmark run",
      description:
        "By task, configuration and repetition. Repeated values match any; different filters must all match.",
      verbs: ["factory.view"],
      errors: [403],
      params: benchmarkRunParams,
      query: ListQuery,
      response: z.object({ data: z.array(Trial), page_info: PageInfo }),
      handler: async (input) => {
        const {
          configuration_uid: configurationUids = [],
          state = [],
          agent_run_id: runId,
          limit = PAGE_SIZE,
          cursor: pageToken = "",
        } = input.query;
        const page = await benchmarks.listTrials(
          {
            ...benchmarkRunRef(input.params),
            configurationUids,
            states: [...new Set(state.map((each) => (each === "queued" ? "pending" : each)))],
            agentRunUid: runId ?? "",
            pageSize: runId === undefined ? limit : 1,
            pageToken,
            include: included(input.query.include),
          },
          onBehalf(input),
        );
        return { data: page.trials.map(trialRecord), page_info: pageInfo(page.nextPageToken) };
      },
    }),
    route({
      method: "GET",
      path: `${BENCHMARK_RUN}/trials/export`,
      summary: "Export the trials of a benchmark run with scores and metrics",
      extension: true,
      description:
        "NDJSON: one trial per line, as in the list. CSV: one line per trial and scorer. Texts that a spreadsheet would evaluate as a formula begin with an apostrophe. " +
        "If the connection ends without the last chunk, the export is incomplete.",
      verbs: ["factory.view"],
      errors: [403],
      params: benchmarkRunParams,
      query: z.object({ format: z.enum(["ndjson", "csv"]).default("ndjson") }),
      responses: { 200: { description: "All trials.", contentType: ["application/x-ndjson", "text/csv"] } },
      handler: async (input) => {
        const pageAt = (pageToken: string) =>
          benchmarks.listTrials(
            { ...benchmarkRunRef(input.params), pageSize: EXPORT_PAGE_SIZE, pageToken, include: [...EXPANDED.results] },
            onBehalf(input),
          );
        const isCsv = input.query.format === "csv";
        const texts = pagesOf(await pageAt(""), pageAt, isCsv);
        const name = `${input.params.run_uid}.${input.query.format}`;
        return textStreamReply(isCsv ? "text/csv; charset=utf-8" : "application/x-ndjson", input.request, texts, {
          headers: { "content-disposition": `attachment; filename="${name}"` },
        });
      },
    }),
    route({
      method: "GET",
      path: `${BENCHMARK_RUN}/trials/{trial_uid}`,
      summary: "Read a trial",
      verbs: ["factory.view"],
      errors: [403],
      params: benchmarkRunParams.extend({ trial_uid: pathUid("trial") }),
      query: OneQuery,
      response: Trial,
      handler: async (input) => {
        const { trial_uid: trialUid, ...ref } = input.params;
        const { trial } = await benchmarks.getTrial(
          { ...benchmarkRunRef(ref), trialUid, include: included(input.query.include) },
          onBehalf(input),
        );
        return trialRecord(trial!);
      },
    }),
  ];
}

const trialRecord = ({ data = {} }: scoring.Trial) => data as z.input<typeof Trial>;

/** Yields the rows of all pages. Reads a page when the client has received the previous page. */
async function* pagesOf(
  first: scoring.ListTrialsResponse,
  pageAt: (token: string) => Promise<scoring.ListTrialsResponse>,
  isCsv: boolean,
): AsyncGenerator<string> {
  if (isCsv) yield CSV_HEADER;
  for (let page = first; ; page = await pageAt(page.nextPageToken)) {
    const rows = page.trials.map(({ data = {} }) => (isCsv ? csvRows(data) : ndjsonRow(data))).join("");
    if (rows !== "") yield rows;
    if (page.nextPageToken === "") return;
  }
}
