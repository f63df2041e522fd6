import { can, isMember, type Caller } from "@millwright/caller";
import { DomainError, notFound } from "@millwright/errors";
import { appendEvents } from "@millwright/events";
import { causedBy, facts, type Cause } from "../events/facts.ts";
import type { Tx } from "../store/identity-db.ts";
import { deleteKeys, getKey, type Key } from "../store/key-store.ts";

/**
 * Revokes a key, effective with the next request. People can always revoke their own keys; agent.manage allows it for
 * keys of agents, and team.manage for all keys of the team.
 *
 * Errors: key_not_found (also for keys that the caller cannot see) · not_authorized (run tokens, agents).
 */
export async function revokeKey(
  deps: { tx: Tx },
  caller: Caller,
  input: { teamUid: string; keyUid: string },
): Promise<void> {
  if (!isMember(caller, input.teamUid)) throw notFound("key");
  const key = await getKey(deps.tx, input.teamUid, input.keyUid);
  const isOwn = key.userUid === caller.principal.uid;
  const mayRevoke =
    can(caller, input.teamUid, "team.manage") || (key.agentUid !== null && can(caller, input.teamUid, "agent.manage"));
  if (!isOwn && !mayRevoke) throw notFound("key");
  if (caller.principal.type !== "user" || caller.run)
    throw new DomainError({
      kind: "permission_denied",
      reason: "not_authorized",
      message: "Managing keys requires the key of a user; keys of agents and run tokens are not accepted.",
    });
  await forgetKeys(deps.tx, causedBy(caller), await deleteKeys(deps.tx, { uid: key.uid }));
}

/** Publishes the revocation of keys that were deleted in this transaction. */
export async function forgetKeys(
  { sql }: Pick<Tx, "sql">,
  by: Cause,
  keys: readonly Pick<Key, "uid" | "teamUid">[],
): Promise<void> {
  await appendEvents(
    sql,
    keys.map((key) => facts.keyRevoked(by, { uid: key.uid, version: 2, teamUid: key.teamUid })),
  );
}
