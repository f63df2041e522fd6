import type { Clock } from "@millwright/clock";
import { appendEvents } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { hashOfKey, newKeyText, shownPrefix, type KeyKind } from "../domain/credentials.ts";
import { facts, type Cause } from "../events/facts.ts";
import type { Tx } from "../store/identity-db.ts";
import { insertKey, type Key } from "../store/key-store.ts";
import { claimAccount } from "../store/team-store.ts";

export type KeyOrder = {
  kind: KeyKind;
  name: string;
  /** Null: a worker key of the whole platform, or a key for all teams of a user who is in none. */
  teamUid: string | null;
  userUid?: string;
  agentUid?: string;
  /** A user's key for every team the user is in. */
  allTeams?: boolean;
  /** Reaches what the user owns personally (docs/security.md). */
  personal?: boolean;
  scopes?: readonly string[];
  expiresAt?: Date;
  /** The key's text when an operator chose it; else a random one. */
  text?: string;
};

/** Makes a key and answers its text, which is stored nowhere. Whether the caller may order it has been decided. */
export async function issueKey(
  deps: { tx: Tx; clock: Clock },
  by: Cause,
  order: KeyOrder,
): Promise<{ key: Key; text: string }> {
  const text = order.text ?? newKeyText(order.kind);
  if (order.personal && order.userUid) await claimAccount(deps.tx, order.userUid, deps.clock.now());
  const key = await insertKey(deps.tx, {
    uid: newUid(),
    hash: hashOfKey(text),
    prefix: shownPrefix(text),
    name: order.name,
    kind: order.kind,
    userUid: order.userUid ?? null,
    agentUid: order.agentUid ?? null,
    teamUid: order.teamUid,
    allTeams: order.allTeams ?? false,
    personal: order.personal ?? false,
    scopes: [...(order.scopes ?? [])],
    createdBy: by.actor.uid,
    expiresAt: order.expiresAt ?? null,
    lastUsedAt: null,
    createdAt: deps.clock.now(),
  });
  await appendEvents(deps.tx.sql, [
    facts.keyCreated(by, { uid: key.uid, teamUid: key.teamUid, payload: { name: key.name, kind: key.kind } }),
  ]);
  return { key, text };
}
