import { sendTo, type Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";
import type { EventUid } from "@millwright/ids";
import { currentScope, formatTraceparent } from "@millwright/telemetry";
import type { NewEvent } from "./event.ts";

/** The topic that a transaction announces when it has appended events; see `Database.onCommit`. */
export const EVENTS_APPENDED = "events appended";

/**
 * Writes events in the caller's transaction, in the given order. Call it after the aggregate is locked: only then is
 * the order within an entity the order of its changes.
 */
export async function appendEvents(sql: Sql, events: readonly NewEvent[]): Promise<void> {
  if (events.length === 0) return;
  const scope = currentScope();
  const traceparent = scope && formatTraceparent(scope.trace);
  const rows = events.map((event) => ({
    uid: newUid<EventUid>(),
    type: event.type,
    entity: event.entity,
    entity_uid: event.entityUid,
    entity_version: event.entityVersion,
    team_uid: event.teamUid,
    actor_type: event.actor.type,
    actor_uid: event.actor.uid,
    request_id: event.requestId,
    cause: event.cause,
    traceparent: event.traceparent ?? traceparent,
    occurred_at: event.occurredAt,
    payload: event.payload,
  }));
  await sendTo(
    sql,
    `INSERT INTO stream.event_pending (uid, type, entity, entity_uid, entity_version, team_uid, actor_type, actor_uid,
                                       request_id, cause, traceparent, occurred_at, payload)
     SELECT (e->>'uid')::uuid, e->>'type', e->>'entity', e->>'entity_uid', (e->>'entity_version')::bigint,
            (e->>'team_uid')::uuid, e->>'actor_type', e->>'actor_uid', e->>'request_id', e->>'cause', e->>'traceparent',
            coalesce((e->>'occurred_at')::timestamptz, now()), e->'payload'
       FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS given (e, n)
      ORDER BY n`,
    [JSON.stringify(rows)],
  );
  sql.announce?.(EVENTS_APPENDED);
}
