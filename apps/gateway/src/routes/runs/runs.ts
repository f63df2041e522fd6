import { create } from "@bufbuild/protobuf";
import { z } from "zod";
import { chooseTeam, type Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { DomainError, invalidArgument } from "@millwright/errors";
import {
  cursor,
  instant,
  PageInfo,
  pageInfo,
  pageLimit,
  pathUid,
  queryBoolean,
  queryList,
  queryMap,
  queryText,
  route,
  type Route,
} from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import type { PageLinks } from "../../pages/page-links.ts";
import { Budget, budgetRecord } from "../costs/budgets.ts";
import { timeBounds } from "../formats/json-values.ts";
import { omitUndefined } from "@millwright/json";
import type { FindProfiles } from "../identity/profiles.ts";
import { runRecords } from "./run-record.ts";
import { ArtifactType, CreatedRun, CreateRunRequest, RunItem, RunSourceType, RunState } from "./run-schemas.ts";

export type RunRoutesDeps = {
  upstreams: Pick<Upstreams, "runs" | "leases">;
  findProfiles: FindProfiles;
  links: PageLinks;
  /** Returns whether all these teams have the capability `metadata_filter`. */
  haveMetadataFilter: (teamUids: readonly string[]) => Promise<boolean>;
  /**
   * Returns the uid of the team member on whose behalf the caller creates a run. Errors: on_behalf_of_refused
   * (permission_denied).
   */
  findPrincipal: (caller: Caller, teamUid: string, member: string) => Promise<string>;
};

/** The body contains up to five attachments of 10 MB each in base64. */
const CREATE_BODY_BYTES_MAX = 70 * 1024 * 1024;

export const runParams = z.object({ runId: pathUid("run") });

/** Returns the routes that create, list, read, retry and cancel runs. */
export function runRoutes({
  upstreams: { runs, leases },
  findProfiles,
  links,
  haveMetadataFilter,
  findPrincipal,
}: RunRoutesDeps): Route[] {
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
  const createRun = (path: string) =>
    route({
      method: "POST",
      path,
      summary: "Start a run",
      description: "Queues a run of a cloud agent. The prompt is required unless a skill or a conversation is given.",
      verbs: ["run.create"],
      idempotent: true,
      teamHeader: true,
      errors: [403, 404, 409],
      bodyBytesMax: CREATE_BODY_BYTES_MAX,
      timeoutMs: 60_000,
      body: CreateRunRequest,
      response: CreatedRun,
      handler: async (input) => {
        const request = runRequest(input.body, input.caller, input.request.idempotency?.key);
        const { on_behalf_of: member } = input.body;
        if (member !== undefined) request.creatorUid = await findPrincipal(input.caller, request.ownerUid, member);
        const response = await runs.createRuns({ runs: [request] }, onBehalf(input));
        return createdRun(response.runs[0]!);
      },
    });
  return [
    createRun("/agent/run"),
    createRun("/agent/runs"),
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

/** Returns the request for the orchestrator, with the owner of the run and its deduplication key. */
function runRequest(
  body: z.output<typeof CreateRunRequest>,
  caller: Caller,
  key: string | undefined,
): orchestrator.RunRequest {
  const parentRunUid = body.parent_run_id ?? caller.run?.runUid;
  return create(orchestrator.RunRequestSchema, {
    ...ownerOf(body.team, caller),
    config: body.config ?? {},
    mode: body.mode ?? "",
    interactive: body.interactive ?? false,
    metadata: body.metadata ?? {},
    attachments: [...(body.attachments ?? []), ...(body.images ?? []).map(named)].map((file) => ({
      fileName: file.file_name,
      mimeType: file.mime_type,
      data: Buffer.from(file.data, "base64"),
    })),
    source: caller.run ? "ORCHESTRATION" : "API",
    ...omitUndefined({
      prompt: body.prompt,
      title: body.title,
      skill: body.skill,
      agentUid: body.agent_identity_uid ?? (body.agent_name === undefined ? ownAgentOf(caller) : undefined),
      agentName: body.agent_name,
      conversationUid: body.conversation_id,
      parentRunUid,
      ...idempotencyOf(caller, key),
    }),
  });
}

/**
 * Returns the uid of the calling agent. An agent executes the runs and schedules that it creates itself, with its key
 * or from one of its runs.
 */
export const ownAgentOf = ({ principal }: Caller): string | undefined =>
  principal.type === "agent" ? principal.uid : undefined;

/**
 * Returns the deduplication key of a create. A key sent with a run token becomes a cause key, which does not expire: a
 * tool call creates at most one run.
 */
function idempotencyOf(caller: Caller, key: string | undefined): { causeKey?: string; idempotencyKey?: string } {
  if (key === undefined) return {};
  return caller.run ? { causeKey: `${caller.run.runUid}:${key}` } : { idempotencyKey: key };
}

/**
 * Returns the response to a create. Its state is always QUEUED, so that a repeat returns the same response as the first
 * request.
 */
const createdRun = ({ run, atCapacity }: orchestrator.CreatedRun): z.input<typeof CreatedRun> => ({
  run_id: run!.uid,
  task_id: run!.uid,
  state: "QUEUED",
  at_capacity: atCapacity ? true : undefined,
});

/** Returns the image with a file name. The default is its position and type: "image-1.png". */
const named = <T extends { file_name?: string | undefined; mime_type: string }>(
  image: T,
  index: number,
): T & { file_name: string } => ({
  ...image,
  file_name: image.file_name ?? `image-${index + 1}.${/^image\/([a-z]+)/.exec(image.mime_type)?.[1] ?? "bin"}`,
});

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

/**
 * Returns the owner of a new run or schedule. If `team` is absent, the owner is the team, or the user if the caller has
 * no team (a child of a personal run, a user without a team).
 */
export function ownerOf(
  team: boolean | undefined,
  caller: Caller,
  thing: "run" | "schedule" = "run",
): { ownerType: string; ownerUid: string } {
  const hasTeam = caller.teams.length > 0 || caller.activeTeamUid !== undefined;
  if (team ?? hasTeam) return { ownerType: "team", ownerUid: chooseTeam(caller) };
  if (caller.principal.type !== "user")
    throw invalidArgument(`personal_${thing}_of_agent`, `An agent's ${thing}s belong to its team.`);
  return { ownerType: "user", ownerUid: caller.principal.uid };
}
