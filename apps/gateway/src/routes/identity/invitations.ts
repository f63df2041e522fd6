import { z } from "zod";
import { ROLES } from "../../identity/index.ts";
import { pathUid, route, type Route } from "../../rest/index.ts";
import type { IdentityRouteDeps } from "./identity-deps.ts";
import { emailAddress, InvitationRecord, invitationRecord, MemberRecord, memberRecord } from "./identity-schemas.ts";

const teamParams = z.object({ uid: pathUid("team") });
const ofTeam = z.object({ uid: pathUid("team"), invitationUid: pathUid("invitation") });
const own = z.object({ invitationUid: pathUid("invitation") });

const Invitations = z.object({ invitations: z.array(InvitationRecord) });
const NewInvitation = z.object({ email: emailAddress(), role: z.enum(ROLES).default("member") });
const ACCEPTING = "Requires a key that the caller created, without scopes.";

/**
 * Returns the routes of invitations: an owner invites a person who uses the platform, and the person accepts.
 * Millwright extension.
 */
export function invitationRoutes({ identity: { invitations }, createOnce }: IdentityRouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/team/{uid}/invitations",
      extension: true,
      summary: "Invite a person to a team",
      description:
        "The person accepts with their own key (`POST /invitations/{invitationUid}/accept`). An invitation is valid for 30 days, and only while the inviter has permission to invite. With a sign-in provider, anyone can be invited; a person without a personal key accepts only if the provider has verified the address. Without one, 409 `no_account`: the person is new to the platform (`POST /team/{uid}/members`); `account_unclaimed`: they have no personal key yet.",
      verbs: ["team.manage"],
      status: 201,
      errors: [403, 409],
      idempotent: true,
      params: teamParams,
      body: NewInvitation,
      response: InvitationRecord,
      handler: ({ caller, params: { uid }, body, request }) =>
        createOnce(caller, request.idempotency, async (tx) =>
          invitationRecord(await invitations.create(tx, caller, { teamUid: uid, email: body.email, role: body.role })),
        ),
    }),
    route({
      method: "GET",
      path: "/team/{uid}/invitations",
      extension: true,
      summary: "List a team's invitations, newest first",
      verbs: ["team.manage"],
      errors: [403],
      params: teamParams,
      response: Invitations,
      handler: async ({ caller, params: { uid } }) => ({
        invitations: (await invitations.listOfTeam(caller, uid)).map(invitationRecord),
      }),
    }),
    route({
      method: "DELETE",
      path: "/team/{uid}/invitations/{invitationUid}",
      extension: true,
      summary: "Revoke an invitation",
      verbs: ["team.manage"],
      status: 204,
      errors: [403],
      params: ofTeam,
      handler: ({ caller, params: { uid: teamUid, invitationUid: uid } }) =>
        invitations.revoke(caller, { teamUid, uid }),
    }),
    route({
      method: "GET",
      path: "/invitations",
      extension: true,
      summary: "List your invitations, newest first",
      description: ACCEPTING,
      errors: [403],
      response: Invitations,
      handler: async ({ caller }) => ({
        invitations: (await invitations.listOwn(caller)).map(invitationRecord),
      }),
    }),
    route({
      method: "POST",
      path: "/invitations/{invitationUid}/accept",
      extension: true,
      summary: "Accept an invitation: join its team",
      description: ACCEPTING,
      errors: [403, 409],
      params: own,
      response: z
        .object({ team: InvitationRecord.shape.team, member: MemberRecord })
        .meta({ id: "AcceptedInvitation" }),
      handler: async ({ caller, params: { invitationUid } }) => {
        const { invitation, member } = await invitations.accept(caller, invitationUid);
        return { team: invitationRecord(invitation).team, member: memberRecord(member) };
      },
    }),
    route({
      method: "DELETE",
      path: "/invitations/{invitationUid}",
      extension: true,
      summary: "Decline an invitation",
      description: ACCEPTING,
      status: 204,
      errors: [403],
      params: own,
      handler: ({ caller, params: { invitationUid } }) => invitations.decline(caller, invitationUid),
    }),
  ];
}
