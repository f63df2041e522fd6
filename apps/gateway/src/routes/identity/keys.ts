import { z } from "zod";
import { can, isMember, VERBS } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { cursor, instant, PageInfo, pageInfo, pageLimit, pathUid, route, uuid, type Route } from "../../rest/index.ts";
import { openPosition, pageOf, type IdentityRouteDeps } from "./identity-deps.ts";
import { IssuedKey, KeyRecord, keyRecord } from "./identity-schemas.ts";

const teamParams = z.object({ uid: pathUid("team") });

const NewKey = z.object({
  name: z.string().trim().min(1).max(100),
  kind: z
    .enum(["api", "worker"])
    .default("api")
    .meta({ description: "worker: permits workers to connect and execute the team's runs." }),
  agent_uid: uuid().optional().meta({ description: "The agent the key is for. Default: a key of a user." }),
  user_uid: uuid()
    .optional()
    .meta({ description: "The caller, who is also the default. Keys of other people cannot be created." }),
  all_teams: z.boolean().default(false).meta({
    description:
      "A key of the caller for all current and future teams. Requires a key of the caller without scopes, or an all-teams key.",
  }),
  scopes: z.array(z.enum(VERBS)).min(1).optional().meta({ description: "Permissions the key is limited to." }),
  expires_at: instant().optional(),
});

/**
 * Returns the routes of API and worker keys. Only the response to the creation contains the key itself. Millwright
 * extension.
 */
export function keyRoutes({ identity: { keys }, cursors, createOnce }: IdentityRouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/team/{uid}/keys",
      extension: true,
      summary: "List a team's keys, newest first; without team.manage, only the caller's keys",
      params: teamParams,
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ keys: z.array(KeyRecord), page_info: PageInfo }),
      handler: async ({ caller, params: { uid }, query }) => {
        if (!isMember(caller, uid)) throw notFound("team");
        // A run acts for its creator, but must not list the creator's keys.
        if (caller.run) return { keys: [], page_info: pageInfo(undefined) };
        const userUid = can(caller, uid, "team.manage") ? undefined : caller.principal.uid;
        const bind = { team: uid, userUid };
        const after = query.cursor === undefined ? undefined : openPosition(cursors.open("keys", bind, query.cursor));
        const rows = await keys.list(uid, {
          userUid,
          limit: query.limit + 1,
          after: after && { createdAt: after.at, uid: after.uid },
        });
        const { items, nextCursor } = pageOf(rows, query.limit, (key) =>
          cursors.seal("keys", bind, [key.createdAt, key.uid]),
        );
        return { keys: items.map(keyRecord), page_info: pageInfo(nextCursor) };
      },
    }),
    route({
      method: "POST",
      path: "/team/{uid}/keys",
      extension: true,
      summary: "Create a key for yourself, an agent or workers",
      description:
        "For yourself: any member. For an agent: agent.manage. For workers: team.manage. Keys of other people can be listed and revoked with team.manage, not created. The key is returned once.",
      status: 201,
      errors: [403],
      idempotent: true,
      params: teamParams,
      body: NewKey,
      response: IssuedKey,
      handler: ({ caller, params: { uid }, body, request }) =>
        createOnce(caller, request.idempotency, async (tx) => {
          const { key, text } = await keys.create(tx, caller, {
            teamUid: uid,
            name: body.name,
            kind: body.kind,
            agentUid: body.agent_uid,
            userUid: body.user_uid,
            allTeams: body.all_teams,
            scopes: body.scopes ?? [],
            expiresAt: body.expires_at,
          });
          return { key: keyRecord(key), api_key: text };
        }),
    }),
    route({
      method: "DELETE",
      path: "/team/{uid}/keys/{keyUid}",
      extension: true,
      summary: "Revoke a key immediately",
      status: 204,
      errors: [403],
      params: z.object({ uid: pathUid("key"), keyUid: pathUid("key") }),
      handler: ({ caller, params: { uid, keyUid } }) => keys.revoke(caller, { teamUid: uid, keyUid }),
    }),
  ];
}
