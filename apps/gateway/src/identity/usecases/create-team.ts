import { requirePlatformAdmin, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { causedBy, facts } from "../events/facts.ts";
import type { Tx } from "../store/identity-db.ts";
import type { Key } from "../store/key-store.ts";
import { ensureUser, insertMember, insertTeam, type Team } from "../store/team-store.ts";
import { issueKey } from "./issue-key.ts";

export type NewTeam = { name: string; ownerEmail: string; ownerName: string };

/**
 * Creates a team, its first owner (the caller, or a person new to the platform) and a key of the owner for this team
 * only. Other people who use the platform already join by invitation.
 *
 * Errors: not_authorized unless the caller is a platform administrator · user_exists (conflict).
 */
export async function createTeam(
  deps: { tx: Tx; clock: Clock },
  caller: Caller,
  input: NewTeam,
): Promise<{ team: Team; key: Key; text: string }> {
  requirePlatformAdmin(caller, "Creating a team");
  const { tx } = deps;
  const now = deps.clock.now();
  const by = causedBy(caller);
  const team = await insertTeam(tx, { uid: newUid(), name: input.name, createdAt: now, updatedAt: now });
  const { user: owner, isUnused } = await ensureUser(tx, {
    uid: newUid(),
    email: input.ownerEmail,
    displayName: input.ownerName,
    createdAt: now,
  });
  const isCaller = owner.uid === caller.principal.uid;
  if (!isUnused && !isCaller) throw userExists(owner.email);
  await insertMember(tx, team.uid, owner, "owner", now);
  await appendEvents(tx.sql, [
    facts.teamCreated(by, { uid: team.uid, teamUid: team.uid, payload: { name: team.name } }),
    facts.memberAdded(by, { uid: `${team.uid}:${owner.uid}`, teamUid: team.uid, payload: { role: "owner" } }),
  ]);
  const issued = await issueKey(deps, by, {
    kind: "api",
    name: "owner",
    teamUid: team.uid,
    userUid: owner.uid,
    personal: isUnused || caller.personal !== undefined,
  });
  return { team, ...issued };
}

const userExists = (email: string): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "user_exists",
    message: `${email} uses this platform already. Create the team without an owner, then invite this person as its owner: POST /team/{uid}/invitations.`,
  });
