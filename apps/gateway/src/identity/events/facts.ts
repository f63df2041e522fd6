import type { JsonObject } from "@bufbuild/protobuf";
import { actorOf, type Caller } from "@millwright/caller";
import type { NewEvent } from "@millwright/events";

/** The actor and request that caused a change, recorded in its events. */
export type Cause = { actor: { type: string; uid: string }; requestId: string; cause?: string };

export const causedBy = (caller: Caller): Cause => {
  const { type, uid } = actorOf(caller);
  return { actor: { type, uid }, requestId: caller.requestId };
};

type Fact = { uid: string; version?: number; teamUid?: string | null; payload?: JsonObject };

const fact =
  (entity: string, happened: string) =>
  (by: Cause, { uid, version = 1, teamUid, payload = {} }: Fact): NewEvent => ({
    type: `millwright.${entity}.${happened}.v1`,
    entity,
    entityUid: uid,
    entityVersion: version,
    teamUid: teamUid || undefined,
    payload,
    ...by,
  });

/**
 * Events that this service publishes. Payloads contain names and uids, never e-mail addresses, prompts or secret
 * values.
 */
export const facts = {
  teamCreated: fact("team", "created"),
  /** Payload: changed, concurrency_limit, queue_weight, queue_paused. */
  teamUpdated: fact("team", "updated"),
  /** Payload: role. The uid is `<team>:<user>`. */
  memberAdded: fact("member", "added"),
  memberUpdated: fact("member", "updated"),
  memberRemoved: fact("member", "removed"),
  /** Payload: role. */
  invitationCreated: fact("invitation", "created"),
  invitationAccepted: fact("invitation", "accepted"),
  invitationDeleted: fact("invitation", "deleted"),
  /** Payload: name, kind. */
  keyCreated: fact("key", "created"),
  keyRevoked: fact("key", "revoked"),
  /** Payload: method (key, link, provider). One event for each team of the principal; the uid is `<team>:<session>`. */
  sessionStarted: fact("session", "started"),
  /** Payload: everywhere. Of sign-outs, not of sessions that expire or end with their key. */
  sessionEnded: fact("session", "ended"),
  /** Payload: name, change (created, updated, deleted). */
  secretChanged: fact("secret", "changed"),
  /** Payload: name, agent_type, factory_uid?, concurrency_limit, queue_priority, queue_paused. */
  agentCreated: fact("agent", "created"),
  agentUpdated: fact("agent", "updated"),
  agentDeleted: fact("agent", "deleted"),
} as const;
