import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { z } from "zod";
import type { metrics as proto } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { onBehalf } from "../../clients/upstreams.ts";
import { cursor, instant, pageInfo, queryChoice, queryInt, queryList, route, type Route } from "../../rest/index.ts";
import { EXPORT_TYPES } from "../formats/export-format.ts";
import { factoryParams } from "../factories/factories.ts";
import type { MetricsReadDeps } from "./factory-metrics.ts";
import { EXPORT_TEXT, exportReply, negotiatedJson, requestedExport } from "./metrics-export.ts";
import { aboutRecord } from "./metrics-records.ts";
import { PULL_REQUEST_STATES, PullRequestPage } from "./metrics-schemas.ts";
import { PULL_REQUEST_COLUMNS } from "./pull-request-columns.ts";
import { pullRequestRecord } from "./pull-request-records.ts";

const PAGE_SIZE = 50;
const PAGE_SIZE_MAX = 500;

const bound = () => instant().optional().meta({ description: "Exclusive." });

const ListQuery = z.object({
  limit: queryInt({ min: 1, max: PAGE_SIZE_MAX })
    .optional()
    .meta({ type: "integer", minimum: 1, maximum: PAGE_SIZE_MAX, default: PAGE_SIZE }),
  cursor: cursor(),
  repo: z
    .string()
    .refine((repo) => /^[^/\s]+(\/[^/\s]+)+$/.test(repo), {
      error: ({ input }) => `must be owner/repo (got ${JSON.stringify(input)})`,
    })
    .optional()
    .meta({ description: "owner/repo, in any case." }),
  state: queryList(queryChoice(PULL_REQUEST_STATES))
    .default([])
    .meta({ description: "Repeatable; any of them matches." }),
  ...{
    opened_after: bound(),
    opened_before: bound(),
    merged_after: bound(),
    merged_before: bound(),
    updated_after: bound(),
  },
});

/** Returns the route of pull requests that a factory's runs produced. The export is a Millwright extension. */
export function factoryPullRequestRoutes({ upstreams: { metrics }, limitMetrics }: MetricsReadDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/factory/{uid}/pull-requests",
      summary: "List the pull requests that a factory's runs produced, newest opened first",
      description:
        "`updated_at` is set by the code host: members derived from runs (`runs`, `kickoff_at`, `human_interactions.follow_up_message`, `cycle_time` " +
        "from the kickoff) can change without updating it. " +
        `${EXPORT_TEXT} Exports have every pull request that matches, from the cursor on, or at most \`limit\` of them.`,
      verbs: ["factory.view"],
      errors: [403, 429],
      params: factoryParams,
      query: ListQuery,
      response: PullRequestPage,
      mediaTypes: EXPORT_TYPES,
      handler: async (input) => {
        await limitMetrics(input.request.credentialHash(), input.params.uid);
        const { limit, cursor: pageToken = "" } = input.query;
        const type = requestedExport(input.request);
        const pageAt = (token: string) => {
          const pageSize = limit ?? (type === undefined ? PAGE_SIZE : PAGE_SIZE_MAX);
          return metrics.listPullRequests(
            { factoryUid: input.params.uid, ...filterOf(input.query), pageSize, pageToken: token },
            onBehalf(input),
          );
        };
        const first = await pageAt(pageToken);
        if (type !== undefined) {
          const pages = pagesOf(first, limit === undefined ? pageAt : undefined);
          return exportReply(type, input.request, { columns: PULL_REQUEST_COLUMNS, pages, name: "pull-requests" });
        }
        return negotiatedJson({
          ...aboutRecord(first.scope!),
          data: first.data.map(pullRequestRecord),
          page_info: pageInfo(first.nextPageToken),
        });
      },
    }),
  ];
}

/**
 * Yields the records of all pages. Reads a page when the client has received the previous page. Without `pageAt`,
 * yields only the first page.
 */
async function* pagesOf(first: Page, pageAt?: (token: string) => Promise<Page>) {
  yield first.data.map(pullRequestRecord);
  if (pageAt === undefined) return;
  for (let token = first.nextPageToken; token !== "";) {
    const page = await pageAt(token);
    yield page.data.map(pullRequestRecord);
    token = page.nextPageToken;
  }
}

type Page = proto.ListPullRequestsResponse;

const filterOf = (query: z.output<typeof ListQuery>) => ({
  repo: query.repo ?? "",
  states: [...new Set(query.state)],
  ...omitUndefined({
    openedAfter: query.opened_after && timestampFromDate(query.opened_after),
    openedBefore: query.opened_before && timestampFromDate(query.opened_before),
    mergedAfter: query.merged_after && timestampFromDate(query.merged_after),
    mergedBefore: query.merged_before && timestampFromDate(query.merged_before),
    updatedAfter: query.updated_after && timestampFromDate(query.updated_after),
  }),
});
