import { sendTo, type Sql } from "@millwright/database";
import { currentScope, formatTraceparent } from "@millwright/telemetry";

/** The topic that a transaction announces when it has enqueued work; see `Database.onCommit`. */
export const WORK_ENQUEUED = "work enqueued";

export type NewWork = {
  /** The kind of handler, such as "cancel-tree". */
  kind: string;
  /** The cause; unique within the kind as long as the item is stored, and the idempotency key of the remote call. */
  key: string;
  /** Input of the handler, as JSON. No secrets. */
  payload: unknown;
  teamUid?: string;
  /** Earliest start; absent: now. Compared with the database's clock. */
  runAt?: Date;
  /** W3C trace context of the cause. Absent: that of the current scope. */
  traceparent?: string;
};

/**
 * Inserts a work item in the caller's transaction. Returns "duplicate" if its key exists; nothing changes then. "Now"
 * is rounded down to the stored milliseconds: rounded up, the wake-up after the commit would find nothing due.
 */
export async function enqueueWork(sql: Sql, work: NewWork): Promise<"enqueued" | "duplicate"> {
  const { rowCount } = await sql.query(ENQUEUE, rowOf(work));
  if (rowCount === 0) return "duplicate";
  sql.announce?.(WORK_ENQUEUED);
  return "enqueued";
}

/** As above, for callers that do not need to know whether the key existed. */
export async function sendWork(sql: Sql, work: NewWork): Promise<void> {
  await sendTo(sql, ENQUEUE, rowOf(work));
  sql.announce?.(WORK_ENQUEUED);
}

/** Inserts many items in one statement, without waiting for its result; items whose key exists are skipped. */
export async function enqueueAllWork(sql: Sql, works: readonly NewWork[]): Promise<void> {
  if (works.length === 0) return;
  await sendTo(sql, ENQUEUE_ALL, [JSON.stringify(works.map(rowOf))]);
  sql.announce?.(WORK_ENQUEUED);
}

const ENQUEUE = `
  INSERT INTO stream.work_items (kind, key, team_uid, payload, due_at, traceparent, created_at)
  VALUES ($1, $2, $3::uuid, $4::jsonb, coalesce($5::timestamptz, date_trunc('milliseconds', now())), $6, now()) ON CONFLICT (kind, key) DO NOTHING`;

const ENQUEUE_ALL = `
  INSERT INTO stream.work_items (kind, key, team_uid, payload, due_at, traceparent, created_at)
  SELECT w ->> 0, w ->> 1, (w ->> 2)::uuid, (w ->> 3)::jsonb, coalesce((w ->> 4)::timestamptz, date_trunc('milliseconds', now())), w ->> 5, now()
    FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY AS given (w, n) ORDER BY n ON CONFLICT (kind, key) DO NOTHING`;

function rowOf({ kind, key, teamUid, payload, runAt, traceparent }: NewWork): unknown[] {
  const scope = currentScope();
  return [
    kind,
    key,
    teamUid ?? null,
    JSON.stringify(payload ?? null),
    runAt?.toISOString() ?? null,
    traceparent ?? (scope ? formatTraceparent(scope.trace) : null),
  ];
}
