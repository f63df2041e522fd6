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
  /** Null for a worker key of the whole platform, or for an all-teams key of a user who is in no team. */
  teamUid: string | null;
  userUid?: string;
  agentUid?: string;
  /** Whether a user's key is valid for every team of the user. */
  allTeams?: boolean;
  /** Whether the key has access to resources that the user owns personally (docs/security.md). */
  personal?: boolean;
  scopes?: readonly string[];
  expiresAt?: Date;
  /** The key's text if an operator chose it; otherwise a random one is generated. */
  text?: string;
};

/** Inserts a key and returns its text, which is not stored. The caller must have checked the authorization. */
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
