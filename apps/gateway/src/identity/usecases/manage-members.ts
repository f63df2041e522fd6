import { requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { ROLE_VERBS, type Role } from "../domain/roles.ts";
import { causedBy, facts, type Cause } from "../events/facts.ts";
import type { Tx } from "../store/identity-db.ts";
import { deleteInvitationsBy } from "../store/invitation-store.ts";
import { deleteKeys } from "../store/key-store.ts";
import { deleteSessionsWithoutTeam } from "../store/session-store.ts";
import {
  countOwners,
  deleteMember,
  ensureUser,
  getMember,
  insertMember,
  lockTeam,
  updateRole,
  type Member,
  type User,
} from "../store/team-store.ts";
import { issueKey } from "./issue-key.ts";
import { forgetKeys } from "./revoke-key.ts";

type Deps = { tx: Tx; clock: Clock };
type NewMember = { teamUid: string; email: string; displayName: string; role: Role };

const uidOf = (teamUid: string, userUid: string): string => `${teamUid}:${userUid}`;

/**
 * Adds a person who is new to the platform, with a first key (`text`) that carries rights in this team only. Existing
 * users of the platform join by invitation.
 *
 * Errors: team_not_found · not_authorized · already_member, invitation_required (conflict).
 */
export async function addMember(
  deps: Deps,
  caller: Caller,
  input: NewMember,
): Promise<{ member: Member; text: string }> {
  const { tx } = deps;
  requireVerb(caller, input.teamUid, "team.manage", "team");
  await lockTeam(tx, input.teamUid);
  const now = deps.clock.now();
  const { user, isUnused } = await ensureUser(tx, {
    uid: newUid(),
    email: input.email,
    displayName: input.displayName,
    createdAt: now,
  });
  if (!isUnused) throw await errorOf(tx, input.teamUid, user);
  const member = await join(deps, causedBy(caller), { teamUid: input.teamUid, user, role: input.role });
  const order = { kind: "api", name: "first key", teamUid: input.teamUid, userUid: user.uid } as const;
  return { member, text: (await issueKey(deps, causedBy(caller), order)).text };
}

/** Makes a user a member. The caller must have locked the team. */
export async function join(
  { tx, clock }: Deps,
  by: Cause,
  { teamUid, user, role, fromClaims = false }: { teamUid: string; user: User; role: Role; fromClaims?: boolean },
): Promise<Member> {
  const member = await insertMember(tx, teamUid, user, role, clock.now(), fromClaims);
  await appendEvents(tx.sql, [facts.memberAdded(by, { uid: uidOf(teamUid, user.uid), teamUid, payload: { role } })]);
  return member;
}

/** Throws `already_member` (conflict) if the user is a member of the team. */
export async function assertNoMember(tx: Tx, teamUid: string, userUid: string): Promise<void> {
  const existing = await tx.prisma.membership.findUnique({ where: { teamUid_userUid: { teamUid, userUid } } });
  if (existing)
    throw new DomainError({
      kind: "conflict",
      reason: "already_member",
      message: "This person is already a member of the team.",
    });
}

async function errorOf(tx: Tx, teamUid: string, { uid, email }: User): Promise<DomainError> {
  await assertNoMember(tx, teamUid, uid);
  return new DomainError({
    kind: "conflict",
    reason: "invitation_required",
    message: `${email} uses this platform already. Invite this person (POST /team/{uid}/invitations); they join by accepting with a key of their own.`,
  });
}

/**
 * Changes a member's role. Deletes the invitations that the member created if the new role may not invite.
 *
 * Errors: team_not_found · not_authorized · member_not_found · last_owner (conflict).
 */
export async function changeRole(
  deps: Deps,
  caller: Caller,
  input: { teamUid: string; userUid: string; role: Role },
): Promise<Member> {
  const before = await lockedMember(deps, caller, input);
  if (before.role === input.role) return before;
  if (before.role === "owner") await assertAnotherOwner(deps.tx, input.teamUid);
  return setRole(deps, causedBy(caller), input);
}

/** Changes the role of a member as `changeRole` does. The caller must have locked the team. */
export async function setRole(
  { tx }: Pick<Deps, "tx">,
  by: Cause,
  input: { teamUid: string; userUid: string; role: Role },
): Promise<Member> {
  const member = await updateRole(tx, input.teamUid, input.userUid, input.role);
  if (!ROLE_VERBS[input.role].includes("team.manage")) await deleteInvitationsCreatedBy(tx, by, input);
  await appendEvents(tx.sql, [
    facts.memberUpdated(by, {
      uid: uidOf(input.teamUid, input.userUid),
      version: member.version,
      teamUid: input.teamUid,
      payload: { role: input.role },
    }),
  ]);
  return member;
}

/**
 * Removes a person from the team, with the keys managed there and the invitations that the person created.
 *
 * Errors: team_not_found · not_authorized · member_not_found · last_owner (conflict).
 */
export async function removeMember(
  deps: Deps,
  caller: Caller,
  input: { teamUid: string; userUid: string },
): Promise<void> {
  const before = await lockedMember(deps, caller, input);
  if (before.role === "owner") await assertAnotherOwner(deps.tx, input.teamUid);
  await removeFromTeam(deps, causedBy(caller), { ...input, version: before.version });
}

/**
 * Removes a member as `removeMember` does. Ends the sessions of a person who is in no team afterwards. The caller must
 * have locked the team.
 */
export async function removeFromTeam(
  { tx }: Pick<Deps, "tx">,
  by: Cause,
  { teamUid, userUid, version }: { teamUid: string; userUid: string; version: number },
): Promise<void> {
  await forgetKeys(tx, by, await deleteKeys(tx, { teamUid, userUid }));
  await deleteInvitationsCreatedBy(tx, by, { teamUid, userUid });
  await deleteMember(tx, teamUid, userUid);
  await deleteSessionsWithoutTeam(tx.sql, userUid);
  await appendEvents(tx.sql, [
    facts.memberRemoved(by, { uid: uidOf(teamUid, userUid), version: version + 1, teamUid }),
  ]);
}

async function deleteInvitationsCreatedBy(
  tx: Tx,
  by: Cause,
  { teamUid, userUid }: { teamUid: string; userUid: string },
): Promise<void> {
  const ended = await deleteInvitationsBy(tx, teamUid, userUid);
  await appendEvents(
    tx.sql,
    ended.map(({ uid, role }) => facts.invitationDeleted(by, { uid, version: 2, teamUid, payload: { role } })),
  );
}

/** Returns a member and locks the team row, so that two owners cannot remove each other concurrently. */
async function lockedMember(deps: Deps, caller: Caller, input: { teamUid: string; userUid: string }): Promise<Member> {
  requireVerb(caller, input.teamUid, "team.manage", "team");
  await lockTeam(deps.tx, input.teamUid);
  return getMember(deps.tx, input.teamUid, input.userUid);
}

async function assertAnotherOwner(tx: Tx, teamUid: string): Promise<void> {
  if ((await countOwners(tx, teamUid)) > 1) return;
  throw new DomainError({
    kind: "conflict",
    reason: "last_owner",
    message: "This is the last owner of the team. Make another member an owner first.",
  });
}
