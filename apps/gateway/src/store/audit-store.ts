import type { Sql } from "@millwright/database";
import type { StoredEvent } from "@millwright/events";
import type { AuditEntry } from "../gen/prisma/client.ts";
import type { Tx } from "./identity-db.ts";

export type { AuditEntry };

/** Notes an event; a second time changes nothing. */
export async function insertAuditEntry(sql: Sql, source: string, event: StoredEvent): Promise<void> {
  await sql.query(
    `INSERT INTO audit_log (uid, team_uid, source, type, entity, entity_uid, actor_type, actor_uid, request_id, cause, payload, occurred_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (uid) DO NOTHING`,
    [
      ...[event.uid, event.teamUid ?? null, source, event.type, event.entity, event.entityUid, event.actor.type, event.actor.uid],
      ...[event.requestId, event.cause ?? null, event.payload, event.occurredAt],
    ],
  );
}

/** A team's audit log, newest first, after a position. */
export const listAuditEntries = (
  { prisma }: Tx,
  teamUid: string,
  after: { occurredAt: Date; uid: string } | undefined,
  limit: number,
): Promise<AuditEntry[]> =>
  prisma.auditEntry.findMany({
    where: {
      teamUid,
      ...(after ? { OR: [{ occurredAt: { lt: after.occurredAt } }, { occurredAt: after.occurredAt, uid: { lt: after.uid } }] } : {}),
    },
    orderBy: [{ occurredAt: "desc" }, { uid: "desc" }],
    take: limit,
  });
