import { requireVerb, requireVerbAs, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError, notFound } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { Role } from "../domain/roles.ts";
import { causedBy, facts } from "../events/facts.ts";
import type { Tx } from "../store/identity-db.ts";
import {
  countInvitations,
  deleteExpiredInvitations,
  deleteInvitation,
  getInvitation,
  insertInvitation,
  listInvitations,
  type Invitation,
} from "../store/invitation-store.ts";
import { hasVerifiedEmail } from "../store/provider-identity-store.ts";
import { findAccount, lockTeam, type Member } from "../store/team-store.ts";
import { assertNoMember, join } from "./manage-members.ts";

export type InvitationDeps = {
  tx: Tx;
  clock: Clock;
  /** People sign in with a provider, which can verify their e-mail addresses. */
  hasProvider: boolean;
};

const VALID_MS = 30 * 24 * 60 * 60 * 1000;
const PER_TEAM_MAX = 1_000;

/**
 * Invites the person with an e-mail address to a team, for 30 days. The person must already have a personal key, or
 * sign in with a provider that has verified the address: otherwise the owner of any team could create the account
 * later, and accept with its first key.
 *
 * Errors: team_not_found · not_authorized · no_account, account_unclaimed, already_member, already_invited,
 * too_many_invitations (conflict).
 */
export async function invite(
  deps: InvitationDeps,
  caller: Caller,
  input: { teamUid: string; email: string; role: Role },
): Promise<Invitation> {
  const { tx } = deps;
  const { teamUid, role } = input;
  requirePerson(caller);
  requireVerb(caller, teamUid, "team.manage", "team");
  await lockTeam(tx, teamUid);
  const email = input.email.toLowerCase();
  const problem = await problemOfAccount(tx, teamUid, email);
  if (problem && !deps.hasProvider) throw problem;
  const now = deps.clock.now();
  await deleteExpiredInvitations(tx, teamUid, now);
  if ((await countInvitations(tx, teamUid)) >= PER_TEAM_MAX)
    throw conflict("too_many_invitations", `A team has at most ${PER_TEAM_MAX} invitations. Revoke some first.`);
  const invitation = {
    uid: newUid(),
    teamUid,
    email,
    role,
    invitedBy: caller.principal.uid,
    createdAt: now,
    expiresAt: new Date(now.getTime() + VALID_MS),
    verifiedOnly: problem !== undefined,
  };
  const inserted = await insertInvitation(tx, invitation);
  if (!inserted)
    throw conflict(
      "already_invited",
      `${email} is already invited. To change the invitation, revoke it and invite this person again.`,
    );
  await appendEvents(tx.sql, [
    facts.invitationCreated(causedBy(caller), { uid: inserted.uid, teamUid, payload: { role } }),
  ]);
  return inserted;
}

/**
 * Returns why the account of an address does not belong to a person yet, or undefined. Throws `already_member`
 * (conflict).
 */
async function problemOfAccount(tx: Tx, teamUid: string, email: string): Promise<DomainError | undefined> {
  const account = await findAccount(tx, email);
  if (!account || account.isUnused)
    return conflict(
      "no_account",
      `${email} does not use this platform yet. Add this person with POST /team/{uid}/members instead.`,
    );
  await assertNoMember(tx, teamUid, account.user.uid);
  if (account.user.claimedAt === null)
    return conflict(
      "account_unclaimed",
      `${email} has no personal key yet. Invite this person after they create one: \`millwright key create NAME\`.`,
    );
  return undefined;
}

/** Returns the pending invitations of a team. Errors: team_not_found · not_authorized. */
export async function listTeamInvitations(
  { tx, clock }: InvitationDeps,
  caller: Caller,
  teamUid: string,
): Promise<Invitation[]> {
  requireVerb(caller, teamUid, "team.manage", "team");
  return listInvitations(tx, { teamUid }, clock.now());
}

/** Deletes an invitation of a team. Errors: team_not_found · not_authorized · invitation_not_found. */
export async function revokeInvitation(
  deps: InvitationDeps,
  caller: Caller,
  input: { teamUid: string; uid: string },
): Promise<void> {
  requireVerb(caller, input.teamUid, "team.manage", "team");
  await deleteAndPublish(deps, caller, await getInvitation(deps.tx, input, deps.clock.now()), "invitationDeleted");
}

/**
 * Returns the invitations for the caller's e-mail address. Errors: not_authorized, unless the key is an unscoped
 * personal key.
 */
export async function listOwnInvitations({ tx, clock }: InvitationDeps, caller: Caller): Promise<Invitation[]> {
  return listInvitations(tx, { email: addressOf(caller) }, clock.now());
}

/**
 * Makes the caller a member of the inviting team. Errors: not_authorized · invitation_not_found · email_not_verified
 * (permission_denied) · already_member (conflict).
 */
export async function acceptInvitation(
  deps: InvitationDeps,
  caller: Caller,
  uid: string,
): Promise<{ invitation: Invitation; member: Member }> {
  const invitation = await getInvitation(deps.tx, { uid, email: addressOf(caller) }, deps.clock.now());
  if (invitation.verifiedOnly && !(await hasVerifiedEmail(deps.tx, caller.principal.uid, invitation.email)))
    throw new DomainError({
      kind: "permission_denied",
      reason: "email_not_verified",
      message: `Only a person whose sign-in provider has verified ${invitation.email} can accept this invitation. Sign in with the provider.`,
    });
  await lockTeam(deps.tx, invitation.teamUid);
  await assertNoMember(deps.tx, invitation.teamUid, caller.principal.uid);
  await deleteAndPublish(deps, caller, invitation, "invitationAccepted");
  const user = await deps.tx.prisma.user.findUniqueOrThrow({ where: { uid: caller.principal.uid } });
  const { teamUid, role } = invitation;
  return { invitation, member: await join(deps, causedBy(caller), { teamUid, user, role }) };
}

/** Deletes an invitation for the caller. Errors: not_authorized · invitation_not_found. */
export async function declineInvitation(deps: InvitationDeps, caller: Caller, uid: string): Promise<void> {
  await deleteAndPublish(
    deps,
    caller,
    await getInvitation(deps.tx, { uid, email: addressOf(caller) }, deps.clock.now()),
    "invitationDeleted",
  );
}

async function deleteAndPublish(
  { tx }: InvitationDeps,
  caller: Caller,
  { uid, teamUid, role }: Invitation,
  fact: "invitationAccepted" | "invitationDeleted",
): Promise<void> {
  await deleteInvitation(tx, uid);
  await appendEvents(tx.sql, [facts[fact](causedBy(caller), { uid, version: 2, teamUid, payload: { role } })]);
}

/**
 * Returns the caller's e-mail address. Only the person can accept a membership, so this requires `team.manage` in the
 * caller's personal rights, which a key created by another person never has.
 */
function addressOf(caller: Caller): string {
  requirePerson(caller);
  if (!caller.personal)
    throw refused("Accepting invitations requires a key that you created yourself: `millwright key create NAME`.");
  requireVerbAs(caller, { type: "user", uid: caller.principal.uid }, "team.manage", "user");
  if (caller.principal.email === undefined) throw notFound("invitation");
  return caller.principal.email;
}

function requirePerson(caller: Caller): void {
  if (caller.principal.type !== "user" || caller.run)
    throw refused("Invitations require the key of a user; keys of agents and run tokens are not accepted.");
}

const conflict = (reason: string, message: string): DomainError =>
  new DomainError({ kind: "conflict", reason, message });

const refused = (message: string): DomainError =>
  new DomainError({ kind: "permission_denied", reason: "not_authorized", message });
