import { z } from "zod";
import { isMember, type Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import { pathUid, route, type Route } from "../../rest/index.ts";
import type { IdentityRouteDeps } from "./identity-deps.ts";
import { emailAddress, IssuedKey, keyRecord, teamRecord, TeamRecord } from "./identity-schemas.ts";

const params = z.object({ uid: pathUid("team") });

const NewTeam = z.object({
  name: z.string().trim().min(1).max(100),
  owner_email: emailAddress().optional().meta({
    description:
      "A person who is new to the platform. Default: the caller. Existing users must be invited: 409 `user_exists`.",
  }),
  owner_name: z.string().trim().min(1).max(100).optional().meta({
    description: "Name of an owner who is new to the platform. Default: the local part of the e-mail address.",
  }),
});

const TeamPatch = z.object({
  name: z.string().trim().min(1).max(100).optional(),
  capabilities: z
    .object({ factory_branches: z.boolean().optional(), metadata_filter: z.boolean().optional() })
    .optional(),
  concurrency_limit: z.int().min(0).max(100_000).optional(),
  queue_weight: z.number().min(0.01).max(100).optional(),
  queue_paused: z.boolean().optional(),
  agent_defaults: z.record(z.string(), z.unknown()).optional(),
});

/** Returns the routes of teams, which own resources. Millwright extension. */
export function teamRoutes({ identity: { teams }, createOnce }: IdentityRouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/team",
      extension: true,
      summary: "Create a team with its first owner (platform administrators)",
      status: 201,
      errors: [403, 409],
      idempotent: true,
      body: NewTeam,
      response: IssuedKey.extend({ team: TeamRecord }).meta({ id: "CreatedTeam" }),
      handler: ({ caller, body, request }) =>
        createOnce(withoutTeams(caller), request.idempotency, async (tx) => {
          const ownerEmail = body.owner_email ?? caller.principal.email ?? "";
          const ownerName = body.owner_name ?? ownerEmail.split("@")[0] ?? "";
          const { team, key, text } = await teams.create(tx, caller, { name: body.name, ownerEmail, ownerName });
          return { team: teamRecord(team), key: keyRecord(key), api_key: text };
        }),
    }),
    route({
      method: "GET",
      path: "/team",
      extension: true,
      summary: "List the caller's teams, oldest first",
      response: z.object({ teams: z.array(TeamRecord) }),
      handler: async ({ caller }) => ({
        teams: (await teams.list(caller.teams.map((team) => team.teamUid))).map(teamRecord),
      }),
    }),
    route({
      method: "GET",
      path: "/team/{uid}",
      extension: true,
      summary: "Get a team",
      params,
      response: TeamRecord,
      handler: async ({ caller, params: { uid } }) => {
        if (!isMember(caller, uid)) throw notFound("team");
        return teamRecord(await teams.get(uid));
      },
    }),
    route({
      method: "PATCH",
      path: "/team/{uid}",
      extension: true,
      summary: "Update a team's name, capabilities, limits or defaults; absent members are unchanged",
      verbs: ["team.manage"],
      errors: [403],
      params,
      body: TeamPatch,
      response: TeamRecord,
      handler: async ({ caller, params: { uid }, body }) => {
        const changes = omitUndefined({
          name: body.name,
          factoryBranches: body.capabilities?.factory_branches,
          metadataFilter: body.capabilities?.metadata_filter,
          concurrencyLimit: body.concurrency_limit,
          queueWeight: body.queue_weight,
          queuePaused: body.queue_paused,
          agentDefaults: body.agent_defaults,
        });
        return teamRecord(await teams.update(caller, { teamUid: uid, changes }));
      },
    }),
  ];
}

/** A create of a team changes the caller's teams. If they belonged to the request, its repetition would be unknown. */
const withoutTeams = (caller: Caller): Caller => omitUndefined({ ...caller, teams: [], activeTeamUid: undefined });
