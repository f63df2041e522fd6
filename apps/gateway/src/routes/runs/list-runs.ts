import { z } from "zod";
import type { Caller } from "@millwright/caller";
import { DomainError, invalidArgument } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import {
  cursor,
  EXTENSION,
  instant,
  PageInfo,
  pageInfo,
  pageLimit,
  queryBoolean,
  queryList,
  queryMap,
  queryText,
  route,
  type Route,
} from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import type { PageLinks } from "../../pages/page-links.ts";
import { timeBounds } from "../formats/json-values.ts";
import type { FindProfiles } from "../identity/profiles.ts";
import { ArtifactType } from "./artifact-schemas.ts";
import { runRecords } from "./run-record.ts";
import { RunItem, RunSourceType, RunState } from "./run-schemas.ts";

export type ListRunRoutesDeps = {
  upstreams: Pick<Upstreams, "runs">;
  findProfiles: FindProfiles;
  links: PageLinks;
  /** Returns whether all these teams have the capability `metadata_filter`. */
  haveMetadataFilter: (teamUids: readonly string[]) => Promise<boolean>;
};

/** Returns the routes that list runs and find a run by an external reference. */
export function listRunRoutes({
  upstreams: { runs },
  findProfiles,
  links,
  haveMetadataFilter,
}: ListRunRoutesDeps): Route[] {
  /** Throws `metadata_filter_off` (feature_off) unless all teams whose runs are listed have the capability. */
  const requireMetadataFilter = async ({ activeTeamUid, teams }: Caller): Promise<void> => {
    const listed = teams
      .map(({ teamUid }) => teamUid)
      .filter((uid) => activeTeamUid === undefined || uid === activeTeamUid);
    if (await haveMetadataFilter(listed)) return;
    throw new DomainError({
      kind: "feature_off",
      reason: "metadata_filter_off",
      message: "Filtering by metadata is disabled for the team. Enable its capability metadata_filter.",
    });
  };
  return [
    route({
      method: "GET",
      path: "/agent/runs",
      summary: "List runs",
      verbs: ["run.view"],
      teamHeader: true,
      errors: [403, 404],
      query: z.object({
        state: queryList(RunState).optional(),
        created_after: instant().optional(),
        created_before: instant().optional(),
        updated_after: instant().optional(),
        ancestor_run_id: queryText().optional(),
        factory_uid: queryList(queryText())
          .optional()
          .meta({ description: "Requires factory.view, as does factory_only; without it, no run matches." }),
        factory_only: queryBoolean()
          .optional()
          .meta({ description: "`true`: only runs that an agent of a factory executes." }),
        automation_id: queryText()
          .optional()
          .meta({ description: "Runs that this automation started, and their descendants." }),
        conversation_id: queryText()
          .optional()
          .meta({ description: "Runs of this conversation.", ...EXTENSION }),
        name: queryText().optional(),
        model_id: queryText().optional(),
        creator: queryText().optional(),
        source: queryList(RunSourceType).optional(),
        environment_id: queryText().optional().meta({ description: "`empty-environment`: runs without one." }),
        skill: queryText().optional(),
        skill_spec: queryText().optional().meta({ description: "The same as `skill`." }),
        schedule_id: queryText().optional(),
        artifact_type: ArtifactType.optional(),
        task_status: queryList(z.enum(["running", "complete", "failed", "blocked", "cancelled"]))
          .optional()
          .meta({ description: "Status of the whole run tree: lists only top-level runs." }),
        executor: queryText().optional(),
        execution_location: z.enum(["LOCAL", "REMOTE"]).optional(),
        metadata: queryMap(z.string())
          .optional()
          .meta({
            param: { style: "deepObject", explode: true },
            description: "`metadata[key]=value`, at most 5 pairs, all of which must match.",
          }),
        q: z.string().optional().meta({
          description:
            "The id of a run or the URL of its page; otherwise words that the title, skill spec or first 10,000 characters of the prompt must all contain. If no run contains all words, returns the newest runs with similar words (typos, prefixes) that are found within the time limit.",
        }),
        sort_by: z.enum(["updated_at", "created_at", "title", "agent"]).default("updated_at"),
        sort_order: z.enum(["asc", "desc"]).default("desc"),
        limit: pageLimit(20, 500),
        cursor: cursor(),
      }),
      response: z.object({ runs: z.array(RunItem), page_info: PageInfo }),
      handler: async (input) => {
        const { query, caller } = input;
        if (query.metadata) await requireMetadataFilter(caller);
        const page = await runs.listRuns(
          {
            teamUid: caller.activeTeamUid ?? "",
            states: query.state ?? [],
            ...timeBounds(query),
            sortBy: query.sort_by,
            sortOrder: query.sort_order,
            pageSize: query.limit,
            pageToken: query.cursor ?? "",
            ancestorRunUid: query.ancestor_run_id ?? "",
            factoryUids: query.factory_uid ?? [],
            taskStatuses: query.task_status ?? [],
            metadata: query.metadata ?? {},
            sources: query.source ?? [],
            skillSpec: skillOf(query),
            factoryOnly: query.factory_only ?? false,
            automationUid: query.automation_id ?? "",
            conversationUid: query.conversation_id ?? "",
            ...omitUndefined({
              name: query.name,
              modelId: query.model_id,
              creatorUid: query.creator,
              environmentUid: query.environment_id,
              scheduleUid: query.schedule_id,
              artifactType: query.artifact_type,
              search: query.q,
              executorUid: query.executor,
              executionLocation: query.execution_location,
            }),
          },
          onBehalf(input),
        );
        return {
          runs: await runRecords(page.runs, findProfiles, links, caller),
          page_info: pageInfo(page.nextPageToken),
        };
      },
    }),
    route({
      method: "GET",
      path: "/agent/run-by-external-reference",
      summary: "Find the run that reported an external reference",
      description: "Returns the first visible run that reported the URL. URLs are compared in canonical form.",
      verbs: ["run.view"],
      errors: [404],
      query: z.object({ url: z.string().min(1) }),
      response: z.object({ run_id: z.string() }),
      handler: async (input) => ({
        run_id: (await runs.findRunByReference({ url: input.query.url }, onBehalf(input))).runUid,
      }),
    }),
  ];
}

/** Returns the skill filter, which has two names. Throws `invalid_parameter` if both are sent and differ. */
function skillOf({
  skill = "",
  skill_spec: spec = "",
}: {
  skill?: string | undefined;
  skill_spec?: string | undefined;
}): string {
  if (skill !== "" && spec !== "" && skill !== spec)
    throw invalidArgument(
      "invalid_parameter",
      "query: skill and skill_spec are names of one filter and must not differ. Send only one of them.",
    );
  return skill || spec;
}
