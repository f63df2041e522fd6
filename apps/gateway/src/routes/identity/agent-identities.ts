import { z } from "zod";
import { can, chooseTeam, type Caller } from "@millwright/caller";
import { invalidArgument, isDomainError, type DomainError } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { pathUid, route, type RequestInfo, type Route } from "../../rest/index.ts";
import { agentFields, AgentRecord, agentRecord, AgentUpdate, NewAgent } from "./agent-identity-schemas.ts";
import type { FindCreated } from "../../store/idempotency-store.ts";
import type { IdentityRouteDeps } from "./identity-deps.ts";

const params = z.object({ uid: pathUid("agent") });

/** Returns the routes of agent identities, which are service accounts of a team. */
export function agentIdentityRoutes(
  deps: IdentityRouteDeps & Pick<Upstreams, "factories" | "catalog"> & { findCreated: FindCreated },
): Route[] {
  const { agents } = deps.identity;
  return [
    route({
      method: "POST",
      path: "/agent/identities",
      summary: "Create an agent in the active team",
      verbs: ["agent.manage"],
      status: 201,
      errors: [403, 404],
      idempotent: true,
      teamHeader: true,
      body: NewAgent,
      response: AgentRecord,
      handler: async ({ caller, body, request }) => {
        const teamUid = chooseTeam(caller);
        const earlier = await deps.findCreated<z.input<typeof AgentRecord>>(caller, request.idempotency);
        if (earlier) return earlier;
        const factoryUid = body.factory_uid ?? undefined;
        if (factoryUid !== undefined) await assertFactoryOfTeam(deps, caller, request, teamUid, factoryUid);
        if (body.environment_id) await assertEnvironmentOfTeam(deps, caller, request, teamUid, body.environment_id);
        const skills = body.skills && (await findSkills(deps, caller, request, teamUid, body.skills));
        return deps.createOnce(caller, request.idempotency, async (tx) =>
          agentRecord(await agents.create(tx, caller, { factoryUid, fields: agentFields({ ...body, skills }) })),
        );
      },
    }),
    route({
      method: "GET",
      path: "/agent/identities",
      summary: "List the active team's agents, newest first",
      teamHeader: true,
      query: z.object({
        factory_uid: z.string().min(1).optional().meta({
          description: "Only agents linked to this factory. Requires factory.view; without it the list is empty.",
        }),
      }),
      response: z.object({ agents: z.array(AgentRecord) }),
      handler: async ({ caller, query: { factory_uid: factoryUid } }) => {
        if (factoryUid !== undefined && !isUuid(factoryUid)) return { agents: [] };
        const teams = teamsShown(caller).filter((uid) => factoryUid === undefined || can(caller, uid, "factory.view"));
        return { agents: (await agents.list(teams, factoryUid)).map(agentRecord) };
      },
    }),
    route({
      method: "GET",
      path: "/agent/identities/{uid}",
      summary: "Get an agent",
      params,
      response: AgentRecord,
      handler: async ({ caller, params: { uid } }) => agentRecord(await agents.get(allTeams(caller), uid)),
    }),
    route({
      method: "PUT",
      path: "/agent/identities/{uid}",
      summary: "Update an agent: omitted and null members are unchanged, empty members are cleared",
      verbs: ["agent.manage"],
      errors: [403, 409],
      params,
      body: AgentUpdate,
      response: AgentRecord,
      handler: async ({ caller, params: { uid }, body, request }) => {
        const teamUid = body.environment_id || body.skills ? (await agents.get(allTeams(caller), uid)).teamUid : "";
        if (body.environment_id) await assertEnvironmentOfTeam(deps, caller, request, teamUid, body.environment_id);
        const skills = body.skills && (await findSkills(deps, caller, request, teamUid, body.skills));
        return agentRecord(
          body.secrets_append
            ? await agents.appendSecrets(caller, { uid, names: body.secrets_append.map(({ name }) => name) })
            : await agents.update(caller, { uid, fields: agentFields({ ...body, skills }) }),
        );
      },
    }),
    route({
      method: "DELETE",
      path: "/agent/identities/{uid}",
      summary: "Delete an agent and, atomically, all its keys",
      description: "Cancels its active runs.",
      verbs: ["agent.manage"],
      errors: [403],
      status: 204,
      params,
      handler: ({ caller, params: { uid } }) => agents.delete(caller, uid),
    }),
  ];
}

const allTeams = (caller: Caller): string[] => caller.teams.map((team) => team.teamUid);
const teamsShown = (caller: Caller): string[] =>
  allTeams(caller).filter((uid) => caller.activeTeamUid === undefined || uid === caller.activeTeamUid);

async function assertFactoryOfTeam(
  { factories }: Pick<Upstreams, "factories">,
  caller: Caller,
  request: RequestInfo,
  teamUid: string,
  uid: string,
): Promise<void> {
  const { factory } = await factories.getFactory({ uid }, onBehalf({ caller, request })).catch((error: unknown) => {
    throw isDomainError(error) && error.kind === "not_found" ? noSuchFactory() : error;
  });
  if (factory?.teamUid !== teamUid) throw noSuchFactory();
}

/**
 * Throws `environment_not_in_team` unless the team owns the environment. A granted or link-shared environment is not
 * accepted, because its owner can revoke the access.
 */
async function assertEnvironmentOfTeam(
  { catalog }: Pick<Upstreams, "catalog">,
  caller: Caller,
  request: RequestInfo,
  teamUid: string,
  uid: string,
): Promise<void> {
  const { activeTeamUid: _any, ...inAllTeams } = caller;
  const { environments } = await catalog.listEnvironments(
    { teamUid, sortBy: "name" },
    onBehalf({ caller: inAllTeams, request }),
  );
  const isOwn = environments.some(
    (environment) => environment.uid === uid && environment.ownerType === "team" && environment.ownerUid === teamUid,
  );
  if (!isOwn)
    throw invalidArgument(
      "environment_not_in_team",
      `environment_id must be an environment that the team owns (got "${uid}").`,
    );
}

/**
 * Returns the full spec of each skill, in the order of `texts` and without duplicates. Throws `skill_not_found`
 * (invalid_argument) if the team's agents cannot find a skill.
 */
async function findSkills(
  { catalog }: Pick<Upstreams, "catalog">,
  caller: Caller,
  request: RequestInfo,
  teamUid: string,
  texts: readonly string[],
): Promise<string[]> {
  if (texts.length === 0) return [];
  const { specByText } = await catalog.findSkills({ teamUid, texts: [...texts] }, onBehalf({ caller, request }));
  const missing = texts.find((text) => specByText[text] === undefined);
  if (missing !== undefined)
    throw invalidArgument(
      "skill_not_found",
      `The team's agents have no skill "${missing}". GET /agent lists the available skills.`,
      { skill: missing },
    );
  return [...new Set(texts.map((text) => specByText[text] ?? text))];
}

const noSuchFactory = (): DomainError =>
  invalidArgument("factory_not_in_team", "factory_uid must be a factory of the team.");
