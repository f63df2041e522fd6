import { z } from "zod";
import { chooseTeam, type Caller } from "@millwright/caller";
import type { factories as proto } from "@millwright/contracts";
import { ALIAS, ALIAS_MAX, hasAtMostCharacters } from "@millwright/definition";
import { isDomainError } from "@millwright/errors";
import { cursor, PageInfo, pageInfo, pageLimit, pathUid, queryBoolean, route, type Route } from "../../rest/index.ts";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import type { PageLinks } from "../../pages/page-links.ts";
import { Factory, factoryRecord, Repository } from "./factory-schemas.ts";
import { omitUndefined } from "@millwright/json";
import type { FindProfiles } from "../identity/profiles.ts";
import { runRecords } from "../runs/run-record.ts";
import { PROMPT_LIMIT, RunState, TEXT_BODY_BYTES_MAX } from "../runs/run-schemas.ts";

export type FactoryRoutesDeps = {
  upstreams: Pick<Upstreams, "factories" | "runs">;
  findProfiles: FindProfiles;
  links: PageLinks;
};

export const factoryParams = z.object({ uid: pathUid("factory") });

const FactoryFields = z.object({
  name: z.string().trim().min(1).max(100),
  alias: z
    .string()
    // Not `regex`: the pattern in the API document would contain the flag of the expression.
    .refine(
      (alias) => ALIAS.test(alias) && hasAtMostCharacters(alias, ALIAS_MAX),
      `letters, digits, space, dot, underscore, dash; at most ${ALIAS_MAX}`,
    )
    .meta({ pattern: ALIAS.source, maxLength: ALIAS_MAX })
    .nullable()
    .optional(),
  description: z.string().nullable().optional(),
  repositories: z.array(Repository).max(200).optional(),
  concurrency_limit: z.int().min(0).max(100_000).optional(),
  queue_paused: z.boolean().optional(),
});

/** Returns the routes of factories, including the one that starts a run of the foreman. */
export function factoryRoutes({ upstreams: { factories, runs }, findProfiles, links }: FactoryRoutesDeps): Route[] {
  const records = async (list: readonly proto.Factory[], caller: Caller) => {
    const profiles = await findProfiles([...new Set(list.map((factory) => factory.creatorUid))].filter(Boolean));
    return list.map((factory) =>
      factoryRecord(factory, {
        permissions: caller.teams.find((team) => team.teamUid === factory.teamUid)?.verbs ?? [],
        creatorEmail: profiles.get(factory.creatorUid)?.email,
      }),
    );
  };
  /**
   * Returns the record of the run that was just created. If the key may not view runs or the read fails, returns its id
   * and initial state, because the run exists.
   */
  const createdRun = async (runUid: string, input: Parameters<typeof onBehalf>[0]) => {
    try {
      const { run } = await runs.getRun({ runUid }, onBehalf(input));
      return (await runRecords([run!], findProfiles, links, input.caller))[0]!;
    } catch (error) {
      if (isDomainError(error)) return { run_id: runUid, task_id: runUid, state: "QUEUED" as const };
      throw error;
    }
  };
  return [
    route({
      method: "GET",
      path: "/factory",
      summary: "List factories",
      verbs: ["factory.view"],
      teamHeader: true,
      query: z.object({
        team_uid: z.string().optional(),
        filter_team_uid: z.string().optional().meta({ description: "Synonym of team_uid." }),
        search: z.string().optional(),
        limit: pageLimit(50),
        cursor: cursor(),
      }),
      response: z.object({ factories: z.array(Factory), page_info: PageInfo }),
      handler: async (input) => {
        const { query, caller } = input;
        const named = (query.team_uid ?? query.filter_team_uid)?.toLowerCase();
        const page = await factories.listFactories(
          {
            teamUid: named ?? caller.activeTeamUid ?? "",
            search: query.search ?? "",
            pageSize: query.limit,
            pageToken: query.cursor ?? "",
          },
          onBehalf(input),
        );
        return { factories: await records(page.factories, caller), page_info: pageInfo(page.nextPageToken) };
      },
    }),
    route({
      method: "POST",
      path: "/factory",
      summary: "Create a factory",
      extension: true,
      verbs: ["factory.manage"],
      teamHeader: true,
      idempotent: true,
      errors: [403, 404, 409],
      status: 201,
      body: FactoryFields.extend({ team_uid: z.string().optional() }),
      response: Factory,
      handler: async (input) => {
        const { body, caller } = input;
        const teamUid = chooseTeam(
          body.team_uid === undefined
            ? caller
            : { ...caller, activeTeamUid: body.team_uid.toLowerCase() as typeof caller.activeTeamUid & string },
        );
        const { factory } = await factories.createFactory(
          { teamUid, factory: factoryFields(body), idempotencyKey: input.request.idempotency?.key ?? "" },
          onBehalf(input),
        );
        return (await records([factory!], caller))[0]!;
      },
    }),
    route({
      method: "GET",
      path: "/factory/{uid}",
      summary: "Read a factory",
      verbs: ["factory.view"],
      errors: [403],
      params: factoryParams,
      response: Factory,
      handler: async (input) => {
        const { factory } = await factories.getFactory({ uid: input.params.uid }, onBehalf(input));
        return (await records([factory!], input.caller))[0]!;
      },
    }),
    route({
      method: "PATCH",
      path: "/factory/{uid}",
      summary: "Change a factory",
      extension: true,
      description:
        "Changes exactly the members that are sent. If files define the factory, only `concurrency_limit` and `queue_paused` can be changed.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      params: factoryParams,
      body: FactoryFields.partial(),
      response: Factory,
      handler: async (input) => {
        const { factory } = await factories.updateFactory(
          { uid: input.params.uid, factory: factoryFields(input.body), updateMask: { paths: Object.keys(input.body) } },
          onBehalf(input),
        );
        return (await records([factory!], input.caller))[0]!;
      },
    }),
    route({
      method: "DELETE",
      path: "/factory/{uid}",
      summary: "Delete a factory",
      extension: true,
      description:
        "Rejected while the factory has active runs. `cancel_runs=true` cancels them and requires run.manage. Local runs are not cancelled.",
      verbs: ["factory.manage"],
      errors: [403, 409],
      status: 204,
      params: factoryParams,
      query: z.object({ cancel_runs: queryBoolean().optional() }),
      handler: async (input) => {
        await factories.deleteFactory(
          { uid: input.params.uid, cancelRuns: input.query.cancel_runs ?? false },
          onBehalf(input),
        );
      },
    }),
    route({
      method: "POST",
      path: "/factory/{uid}/runs",
      summary: "Start a run of a factory's foreman",
      description: "Creates a run of the factory's foreman. Its task is created asynchronously.",
      verbs: ["run.create"],
      idempotent: true,
      storesResponse: true,
      errors: [403, 409, 413],
      status: 201,
      params: factoryParams,
      bodyBytesMax: TEXT_BODY_BYTES_MAX,
      body: z.object({
        prompt: z
          .string()
          .refine((text) => text.trim() !== "", "must not be empty")
          .meta({ description: PROMPT_LIMIT }),
        title: z.string().max(500).optional(),
        ticket_ref: z.string().optional(),
        ticket_url: z
          .url({ protocol: /^https?$/ })
          .max(2048)
          .optional(),
      }),
      response: z
        .looseObject({
          run_id: z.string(),
          state: RunState,
          factory_uid: z.string(),
          foreman_agent: z.string(),
          ticket_ref: z.string(),
          run_url: z.string(),
        })
        .meta({ id: "DispatchedRun" }),
      handler: async (input) => {
        const { body, params, request } = input;
        const sent = await factories.dispatchRun(
          {
            factoryUid: params.uid,
            prompt: body.prompt,
            idempotencyKey: request.idempotency?.key ?? "",
            ...omitUndefined({ title: body.title, ticketRef: body.ticket_ref, ticketUrl: body.ticket_url }),
          },
          onBehalf(input),
        );
        const record = await createdRun(sent.runUid, input);
        return {
          ...record,
          factory_uid: params.uid,
          foreman_agent: sent.foremanAgent,
          ticket_ref: sent.ticketRef,
          run_url: links.runUrl(sent.runUid),
        };
      },
    }),
  ];
}

const factoryFields = (body: Partial<z.output<typeof FactoryFields>>) => ({
  ...omitUndefined({ name: body.name, alias: body.alias ?? undefined, description: body.description ?? undefined }),
  ...omitUndefined({ concurrencyLimit: body.concurrency_limit, queuePaused: body.queue_paused }),
  repositories: (body.repositories ?? []).map((repository) => ({
    owner: repository.owner,
    repo: repository.repo,
    codeForge: repository.code_forge ?? "",
  })),
});
