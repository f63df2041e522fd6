import type { Sql } from "@millwright/database";
import type { StoredEvent } from "@millwright/events";
import type { AuditEntry } from "../gen/prisma/client.ts";

export type { AuditEntry };

/** Inserts events of one source into the audit log. Repeated events have no effect. */
export async function insertAuditEntries(sql: Sql, source: string, events: readonly StoredEvent[]): Promise<void> {
  const rows = events.map((event) => ({
    uid: event.uid,
    team_uid: event.teamUid,
    type: event.type,
    entity: event.entity,
    entity_uid: event.entityUid,
    actor_type: event.actor.type,
    actor_uid: event.actor.uid,
    request_id: event.requestId,
    cause: event.cause,
    payload: event.payload,
    occurred_at: event.occurredAt,
  }));
  await sql.query(
    `INSERT INTO audit_log (uid, team_uid, source, type, entity, entity_uid, actor_type, actor_uid, request_id, cause, payload, occurred_at)
     SELECT uid, team_uid, $2, type, entity, entity_uid, actor_type, actor_uid, request_id, cause, payload, occurred_at
       FROM jsonb_to_recordset($1::jsonb) AS g (uid uuid, team_uid uuid, type text, entity text, entity_uid text, actor_type text, actor_uid text, request_id text, cause text, payload jsonb, occurred_at timestamptz)
     ON CONFLICT (uid) DO NOTHING`,
    [JSON.stringify(rows), source],
  );
}

/** Returns a page of a team's audit log, newest first, after a position. */
export async function listAuditEntries(
  sql: Sql,
  teamUid: string,
  after: { occurredAt: Date; uid: string } | undefined,
  limit: number,
): Promise<AuditEntry[]> {
  const { rows } = await sql.query<AuditEntry>(
    `SELECT uid, team_uid AS "teamUid", type, source, entity, entity_uid AS "entityUid",
            actor_type AS "actorType", actor_uid AS "actorUid", request_id AS "requestId", cause,
            occurred_at AS "occurredAt", payload
       FROM audit_log
      WHERE team_uid = $1::uuid
        AND ($2::timestamptz IS NULL OR (occurred_at, uid) < ($2::timestamptz, $3::uuid))
      ORDER BY occurred_at DESC, uid DESC
      LIMIT $4`,
    [teamUid, after?.occurredAt ?? null, after?.uid ?? null, limit],
  );
  return rows;
}

const PRUNED = 5_000;
const DAY_MS = 86_400_000;

/**
 * Deletes a batch of entries older than that number of days; 0 retains all. Uids of events begin with their time, so
 * the oldest entries are the first ones of the primary key. Returns whether there may be more.
 */
export async function pruneAudit(sql: Sql, now: Date, days: number): Promise<boolean> {
  if (days === 0) return false;
  const { rowCount } = await sql.query(
    `DELETE FROM audit_log
      WHERE uid IN (SELECT uid FROM audit_log ORDER BY uid LIMIT ${PRUNED}) AND occurred_at < $1`,
    [new Date(now.getTime() - days * DAY_MS).toISOString()],
  );
  return rowCount === PRUNED;
}
