import { z } from "zod";
import { requireVerb } from "@millwright/caller";
import { cursor, json, PageInfo, pageInfo, pageLimit, pathText, pathUid, route, type Route } from "../../rest/index.ts";
import { pageOf, type IdentityRouteDeps } from "./identity-deps.ts";
import { SecretRecord, secretRecord } from "./identity-schemas.ts";

const NAME = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/;
const VALUE_CHARACTERS_MAX = 65_536;

const value = () => z.string().min(1).max(VALUE_CHARACTERS_MAX);
const teamParams = z.object({ uid: pathUid("team") });

/** Returns the routes of managed secrets. No route returns a value; only runs read values. Millwright extension. */
export function secretRoutes({ identity: { secrets }, cursors, createOnce }: IdentityRouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/team/{uid}/secrets",
      extension: true,
      summary: "List a team's secrets by name, without values",
      verbs: ["secret.manage"],
      errors: [403],
      params: teamParams,
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ secrets: z.array(SecretRecord), page_info: PageInfo }),
      handler: async ({ caller, params: { uid }, query }) => {
        requireVerb(caller, uid, "secret.manage", "team");
        const bind = { team: uid };
        const after =
          query.cursor === undefined ? undefined : (cursors.open("secrets", bind, query.cursor)[0] as string);
        const rows = await secrets.list(uid, after, query.limit + 1);
        const { items, nextCursor } = pageOf(rows, query.limit, ({ name }) => cursors.seal("secrets", bind, [name]));
        return { secrets: items.map(secretRecord), page_info: pageInfo(nextCursor) };
      },
    }),
    route({
      method: "POST",
      path: "/team/{uid}/secrets",
      extension: true,
      summary: "Create a secret",
      verbs: ["secret.manage"],
      status: 201,
      errors: [403, 409],
      idempotent: true,
      params: teamParams,
      body: z.object({ name: z.string().regex(NAME), value: value() }),
      response: SecretRecord,
      handler: ({ caller, params: { uid }, body, request }) =>
        createOnce(caller, request.idempotency, async (tx) => {
          const { secret } = await secrets.create(tx, caller, { teamUid: uid, ...body, mustBeNew: true });
          return secretRecord(secret);
        }),
    }),
    route({
      method: "PUT",
      path: "/team/{uid}/secrets/{name}",
      extension: true,
      summary: "Create or replace a secret",
      verbs: ["secret.manage"],
      errors: [403],
      params: z.object({ uid: pathUid("team"), name: z.string().regex(NAME) }),
      body: z.object({ value: value() }),
      response: SecretRecord,
      responses: { 201: { description: "Created", schema: SecretRecord } },
      handler: async ({ caller, params: { uid, name }, body }) => {
        const { secret, isNew } = await secrets.set(caller, {
          teamUid: uid,
          name,
          value: body.value,
          mustBeNew: false,
        });
        return isNew ? json(201, secretRecord(secret)) : secretRecord(secret);
      },
    }),
    route({
      method: "DELETE",
      path: "/team/{uid}/secrets/{name}",
      extension: true,
      summary: "Delete a secret",
      verbs: ["secret.manage"],
      status: 204,
      errors: [403],
      params: z.object({ uid: pathUid("secret"), name: pathText("secret", NAME) }),
      handler: ({ caller, params: { uid, name } }) => secrets.delete(caller, { teamUid: uid, name }),
    }),
  ];
}
