import { z } from "zod";
import { isMember } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { ROLES } from "../../identity/index.ts";
import { cursor, PageInfo, pageInfo, pageLimit, pathUid, route, type Route } from "../../rest/index.ts";
import { openPosition, pageOf, type IdentityRouteDeps } from "./identity-deps.ts";
import { emailAddress, MemberRecord, memberRecord, NewMemberRecord } from "./identity-schemas.ts";

const teamParams = z.object({ uid: pathUid("team") });
const memberParams = z.object({ uid: pathUid("team"), userUid: pathUid("member") });

const NewMember = z.object({
  email: emailAddress(),
  display_name: z.string().trim().min(1).max(100).optional(),
  role: z.enum(ROLES).default("member"),
});

/** Returns the routes of a team's members and their roles. Millwright extension. */
export function memberRoutes({ identity: { members }, cursors, createOnce }: IdentityRouteDeps): Route[] {
  return [
    route({
      method: "GET",
      path: "/team/{uid}/members",
      extension: true,
      summary: "List a team's members, oldest first",
      params: teamParams,
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ members: z.array(MemberRecord), page_info: PageInfo }),
      handler: async ({ caller, params: { uid }, query }) => {
        if (!isMember(caller, uid)) throw notFound("team");
        const bind = { team: uid };
        const after =
          query.cursor === undefined ? undefined : openPosition(cursors.open("members", bind, query.cursor));
        const rows = await members.list(uid, after && { createdAt: after.at, uid: after.uid }, query.limit + 1);
        const { items, nextCursor } = pageOf(rows, query.limit, ({ createdAt, user }) =>
          cursors.seal("members", bind, [createdAt, user.uid]),
        );
        return { members: items.map(memberRecord), page_info: pageInfo(nextCursor) };
      },
    }),
    route({
      method: "POST",
      path: "/team/{uid}/members",
      extension: true,
      summary: "Add a person who is new to the platform to a team",
      description:
        "Only this response contains the person's first key. A person who already uses the platform must be invited (`POST /team/{uid}/invitations`): 409 `invitation_required`.",
      verbs: ["team.manage"],
      status: 201,
      errors: [403, 409],
      idempotent: true,
      params: teamParams,
      body: NewMember,
      response: NewMemberRecord,
      handler: ({ caller, params: { uid }, body, request }) =>
        createOnce(caller, request.idempotency, async (tx) => {
          const displayName = body.display_name ?? body.email.split("@")[0] ?? body.email;
          const { member, text } = await members.add(tx, caller, {
            teamUid: uid,
            email: body.email,
            displayName,
            role: body.role,
          });
          return { ...memberRecord(member), api_key: text };
        }),
    }),
    route({
      method: "PATCH",
      path: "/team/{uid}/members/{userUid}",
      extension: true,
      summary: "Change a member's role",
      verbs: ["team.manage"],
      errors: [403, 409],
      params: memberParams,
      body: z.object({ role: z.enum(ROLES) }),
      response: MemberRecord,
      handler: async ({ caller, params: { uid, userUid }, body }) =>
        memberRecord(await members.changeRole(caller, { teamUid: uid, userUid, role: body.role })),
    }),
    route({
      method: "DELETE",
      path: "/team/{uid}/members/{userUid}",
      extension: true,
      summary: "Remove a member and their keys in the team",
      verbs: ["team.manage"],
      errors: [403, 409],
      status: 204,
      params: memberParams,
      handler: ({ caller, params: { uid, userUid } }) => members.remove(caller, { teamUid: uid, userUid }),
    }),
  ];
}
