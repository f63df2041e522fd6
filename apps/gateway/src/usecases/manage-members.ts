import { requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { Role } from "../domain/roles.ts";
import { causedBy, facts } from "../events/facts.ts";
import type { Tx } from "../store/identity-db.ts";
import { deleteKeys } from "../store/key-store.ts";
import { countOwners, deleteMember, ensureUser, getMember, insertMember, lockTeam, updateRole, type Member } from "../store/team-store.ts";
import { forgetKeys } from "./revoke-key.ts";

type Deps = { tx: Tx; clock: Clock };
const uidOf = (teamUid: string, userUid: string): string => `${teamUid}:${userUid}`;

/**
 * Adds a person by e-mail address; one unknown to the platform is created.
 *
 * Errors: team_not_found · not_authorized · already_member (conflict).
 */
export async function addMember(deps: Deps, caller: Caller, input: { teamUid: string; email: string; displayName: string; role: Role }): Promise<Member> {
  const { tx } = deps;
  requireVerb(caller, input.teamUid, "team.manage", "team");
  await lockTeam(tx, input.teamUid);
  const now = deps.clock.now();
  const user = await ensureUser(tx, { uid: newUid(), email: input.email, displayName: input.displayName, createdAt: now });
  const existing = await tx.prisma.membership.findUnique({ where: { teamUid_userUid: { teamUid: input.teamUid, userUid: user.uid } } });
  if (existing) throw new DomainError({ kind: "conflict", reason: "already_member", message: "This person is in the team." });
  const member = await insertMember(tx, input.teamUid, user, input.role, now);
  await appendEvents(tx.sql, [facts.memberAdded(causedBy(caller), { uid: uidOf(input.teamUid, user.uid), teamUid: input.teamUid, payload: { role: input.role } })]);
  return member;
}

/** Errors: team_not_found · not_authorized · member_not_found · last_owner (conflict). */
export async function changeRole(deps: Deps, caller: Caller, input: { teamUid: string; userUid: string; role: Role }): Promise<Member> {
  const before = await lockedMember(deps, caller, input);
  if (before.role === input.role) return before;
  if (before.role === "owner") await assertAnotherOwner(deps.tx, input.teamUid);
  const member = await updateRole(deps.tx, input.teamUid, input.userUid, input.role);
  await appendEvents(deps.tx.sql, [
    facts.memberUpdated(causedBy(caller), { uid: uidOf(input.teamUid, input.userUid), version: member.version, teamUid: input.teamUid, payload: { role: input.role } }),
  ]);
  return member;
}

/**
 * Removes a person from the team, with the keys managed there.
 *
 * Errors: team_not_found · not_authorized · member_not_found · last_owner (conflict).
 */
export async function removeMember(deps: Deps, caller: Caller, input: { teamUid: string; userUid: string }): Promise<void> {
  const before = await lockedMember(deps, caller, input);
  if (before.role === "owner") await assertAnotherOwner(deps.tx, input.teamUid);
  const by = causedBy(caller);
  await forgetKeys(deps.tx, by, await deleteKeys(deps.tx, input));
  await deleteMember(deps.tx, input.teamUid, input.userUid);
  await appendEvents(deps.tx.sql, [facts.memberRemoved(by, { uid: uidOf(input.teamUid, input.userUid), version: before.version + 1, teamUid: input.teamUid })]);
}

/** The team row is the mutex of its members: two owners cannot remove each other at once. */
async function lockedMember(deps: Deps, caller: Caller, input: { teamUid: string; userUid: string }): Promise<Member> {
  requireVerb(caller, input.teamUid, "team.manage", "team");
  await lockTeam(deps.tx, input.teamUid);
  return getMember(deps.tx, input.teamUid, input.userUid);
}

async function assertAnotherOwner(tx: Tx, teamUid: string): Promise<void> {
  if ((await countOwners(tx, teamUid)) > 1) return;
  throw new DomainError({ kind: "conflict", reason: "last_owner", message: "A team keeps at least one owner." });
}
