import { sendTo, type Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";
import type { RunUid } from "@millwright/ids";
import { topics } from "../../storage/wakeups.ts";
import type { NewRunEvent, RunEvent, WorkerEvent, AppendOutcome, AttemptRef } from "../domain/run-events.ts";
import type { JsonObject } from "@millwright/json";

/** Returns new rows of events of the orchestrator, without their run, seq and time. */
export const eventRows = (events: readonly NewRunEvent[]) =>
  events.map(({ kind, executionId, payload }) => ({ uid: newUid(), kind, execution_id: executionId, payload }));

/**
 * Appends events of the orchestrator to a run, in order, with the next seqs, in the caller's transaction. If that
 * transaction locks the run's row, it must have done so before. Notifies subscribers of the run's events after the
 * commit.
 */
export async function appendRunEvents(tx: Sql, runUid: string, events: readonly NewRunEvent[]): Promise<void> {
  if (events.length === 0) return;
  await sendTo(
    tx,
    `WITH stream AS (UPDATE run_streams SET last_seq = last_seq + $2 WHERE run_uid = $1 RETURNING last_seq - $2 AS before)
     INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, execution_id, payload)
     SELECT $1, stream.before + n, (e->>'uid')::uuid, e->>'kind', clock_timestamp(), (e->>'execution_id')::bigint, e->'payload'
       FROM stream, jsonb_array_elements($3::jsonb) WITH ORDINALITY AS given (e, n)`,
    [runUid, events.length, JSON.stringify(eventRows(events))],
    events.length,
  );
  tx.announce?.(topics.runEvents(runUid));
}

/**
 * Appends events of a worker's attempt. Skips events that are already stored, appends nothing if there is a gap, and
 * rejects an attempt that does not own the stream. Locks only the run's stream row.
 */
export async function appendWorkerEvents(
  tx: Sql,
  attempt: AttemptRef,
  events: readonly WorkerEvent[],
): Promise<AppendOutcome> {
  const { rows } = await tx.query<{ last_seq: number; last_client_seq: number; is_owner: boolean }>(
    `SELECT last_seq, last_client_seq, coalesce(execution_id = $2 AND attempt = $3, false) AS is_owner
       FROM run_streams WHERE run_uid = $1 FOR UPDATE`,
    [attempt.runUid, attempt.executionId, attempt.attempt],
  );
  const stream = rows[0];
  if (!stream?.is_owner) return { outcome: "lease_lost" };
  const fresh = events.filter(({ clientSeq }) => clientSeq > stream.last_client_seq);
  const isGapless = fresh.every(({ clientSeq }, n) => clientSeq === stream.last_client_seq + n + 1);
  if (!isGapless) return { outcome: "gap", ackedClientSeq: stream.last_client_seq };
  const ackedClientSeq = stream.last_client_seq + fresh.length;
  const lastSeq = stream.last_seq + fresh.length;
  if (fresh.length === 0) return { outcome: "appended", ackedClientSeq, lastSeq };
  await sendTo(
    tx,
    "UPDATE run_streams SET last_seq = $2, last_client_seq = $3, last_worker_at = clock_timestamp() WHERE run_uid = $1",
    [attempt.runUid, lastSeq, ackedClientSeq],
  );
  await insert(
    tx,
    attempt.runUid,
    fresh.map((event, n) => ({
      seq: stream.last_seq + n + 1,
      uid: newUid(),
      kind: event.kind,
      occurred_at: event.at,
      execution_id: attempt.executionId,
      attempt: attempt.attempt,
      payload: event.payload,
    })),
  );
  return { outcome: "appended", ackedClientSeq, lastSeq };
}

type EventInsert = {
  seq: number;
  uid: string;
  kind: string;
  payload: JsonObject;
  occurred_at: Date;
  execution_id: number;
  attempt: number;
};

async function insert(tx: Sql, runUid: string, rows: readonly EventInsert[]): Promise<void> {
  await sendTo(
    tx,
    `INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, execution_id, attempt, payload)
     SELECT $1, (e->>'seq')::bigint, (e->>'uid')::uuid, e->>'kind', (e->>'occurred_at')::timestamptz,
            (e->>'execution_id')::bigint, (e->>'attempt')::integer, e->'payload'
       FROM jsonb_array_elements($2::jsonb) AS e`,
    [runUid, JSON.stringify(rows)],
  );
  tx.announce?.(topics.runEvents(runUid));
}

type EventRow = {
  seq: number;
  uid: string;
  kind: RunEvent["kind"];
  occurred_at: Date;
  execution_id: number | null;
  attempt: number | null;
  is_superseded: boolean;
  payload: JsonObject;
};

/** Returns events of a run after a seq, oldest first. Superseded events are included and marked. */
export async function listRunEvents(sql: Sql, runUid: string, afterSeq: number, limit: number): Promise<RunEvent[]> {
  const { rows } = await sql.query<EventRow>(
    `SELECT e.seq, e.uid, e.kind, e.occurred_at, e.execution_id, e.attempt, e.payload,
            coalesce(e.attempt < x.accepted_attempt AND e.attempt <> ALL(x.retained_attempts), false) AS is_superseded
       FROM stream.run_events e LEFT JOIN executions x ON x.id = e.execution_id
      WHERE e.run_uid = $1 AND e.seq > $2 ORDER BY e.seq LIMIT $3`,
    [runUid, afterSeq, limit],
  );
  return rows.map((row) => eventOf(runUid, row));
}

/** Returns the newest event of a kind, from any attempt. */
export async function findNewestEvent(sql: Sql, runUid: string, kind: RunEvent["kind"]): Promise<RunEvent | undefined> {
  const { rows } = await sql.query<EventRow>(
    `SELECT seq, uid, kind, occurred_at, execution_id, attempt, payload, false AS is_superseded
       FROM stream.run_events WHERE run_uid = $1 AND kind = $2 ORDER BY seq DESC LIMIT 1`,
    [runUid, kind],
  );
  return rows[0] && eventOf(runUid, rows[0]);
}

const eventOf = (runUid: string, row: EventRow): RunEvent => ({
  runUid: runUid as RunUid,
  seq: row.seq,
  uid: row.uid,
  kind: row.kind,
  occurredAt: row.occurred_at,
  executionId: row.execution_id ?? undefined,
  attempt: row.attempt ?? undefined,
  isSuperseded: row.is_superseded,
  payload: row.payload,
});
