import { sendTo, type Sql } from "@millwright/database";
import { currentScope, formatTraceparent } from "@millwright/telemetry";

/** The news that a transaction announces when it has enqueued work; see `Database.onCommit`. */
export const WORK_ENQUEUED = "work enqueued";

export type NewWork = {
  /** Which handler carries it out, such as "cancel-tree". */
  kind: string;
  /** The cause; unique within the kind for as long as the item is kept, and the idempotency key of the remote call. */
  key: string;
  /** What the handler needs, as JSON. No secrets. */
  payload: unknown;
  teamUid?: string;
  /** Not before; absent: now. Compared with the database's clock. */
  runAt?: Date;
  /** W3C trace context of what brought it about. Absent: that of the present scope. */
  traceparent?: string;
};

/**
 * Writes an item of work in the caller's transaction. Answers "duplicate" when its key is known: nothing changes then.
 * "Now" is rounded down to the milliseconds that are kept: rounded up, the ring after the commit would find nothing due.
 */
export async function enqueueWork(sql: Sql, work: NewWork): Promise<"enqueued" | "duplicate"> {
  const { rowCount } = await sql.query(ENQUEUE, rowOf(work));
  if (rowCount === 0) return "duplicate";
  sql.announce?.(WORK_ENQUEUED);
  return "enqueued";
}

/** The same, for those who need not know whether the key was known. */
export async function sendWork(sql: Sql, work: NewWork): Promise<void> {
  await sendTo(sql, ENQUEUE, rowOf(work));
  sql.announce?.(WORK_ENQUEUED);
}

/** Many in one statement; those whose key is known change nothing. */
export async function enqueueAllWork(sql: Sql, works: readonly NewWork[]): Promise<void> {
  if (works.length === 0) return;
  await sql.query(ENQUEUE_ALL, [JSON.stringify(works.map(rowOf))]);
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
