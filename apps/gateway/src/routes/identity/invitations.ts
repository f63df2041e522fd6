import { z } from "zod";
import { ROLES } from "../../identity/domain/roles.ts";
import { pathUid, route, type Route } from "../../rest/index.ts";
import {
  acceptInvitation,
  declineInvitation,
  invite,
  listOwnInvitations,
  listTeamInvitations,
  revokeInvitation,
} from "../../identity/usecases/invitations.ts";
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
export function invitationRoutes({ db, clock, once }: IdentityRouteDeps): Route[] {
  return [
    route({
      method: "POST",
      path: "/team/{uid}/invitations",
      extension: true,
      summary: "Invite a person to a team",
      description:
        "The person accepts with their own key (`POST /invitations/{invitationUid}/accept`). An invitation is valid for 30 days, and only while the inviter has permission to invite. 409 `no_account`: the person is new to the platform (`POST /team/{uid}/members`); `account_unclaimed`: they have no personal key yet.",
      verbs: ["team.manage"],
      status: 201,
      errors: [403, 409],
      idempotent: true,
      params: teamParams,
      body: NewInvitation,
      response: InvitationRecord,
      handler: ({ caller, params: { uid }, body, request }) =>
        once(caller, request.idempotency, async (tx) =>
          invitationRecord(await invite({ tx, clock }, caller, { teamUid: uid, email: body.email, role: body.role })),
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
        invitations: (await listTeamInvitations({ tx: db.now, clock }, caller, uid)).map(invitationRecord),
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
      handler: async ({ caller, params: { uid: teamUid, invitationUid: uid } }) => {
        await db.transaction((tx) => revokeInvitation({ tx, clock }, caller, { teamUid, uid }));
      },
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
        invitations: (await listOwnInvitations({ tx: db.now, clock }, caller)).map(invitationRecord),
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
        const { invitation, member } = await db.transaction((tx) =>
          acceptInvitation({ tx, clock }, caller, invitationUid),
        );
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
      handler: async ({ caller, params: { invitationUid } }) => {
        await db.transaction((tx) => declineInvitation({ tx, clock }, caller, invitationUid));
      },
    }),
  ];
}
