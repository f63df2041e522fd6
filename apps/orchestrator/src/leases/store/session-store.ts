import type { RunSql } from "../../runs/store/run-sql.ts";
import { hash } from "node:crypto";
import type { Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";
import type { WorkerRegistration, WorkerSession } from "../../runs/domain/worker-session.ts";

type Row = {
  uid: string;
  worker_host: string;
  team_uid: string | null;
  key_uid: string;
  state: "READY" | "DRAINING";
  harness_types: string[];
  images: string[];
  arch: string;
  key_sealed: string;
  is_key_check_due: boolean;
};

const COLUMNS = "uid, worker_host, team_uid, key_uid, state, harness_types, images, arch, key_sealed";

const toSession = (row: Row): WorkerSession => ({
  uid: row.uid,
  workerHost: row.worker_host,
  teamUid: row.team_uid ?? undefined,
  keyUid: row.key_uid,
  state: row.state,
  harnessTypes: row.harness_types,
  images: row.images,
  arch: row.arch || undefined,
});

const hashOf = (token: string): Buffer => hash("sha256", token, "buffer");

export type NewSession = {
  readonly token: string;
  readonly keyUid: string;
  readonly sealedKey: string;
  readonly teamUid?: string;
  readonly registration: WorkerRegistration;
};

/**
 * Stores a registration. A worker last seen more than the lifetime of a lease ago counts as newly connected. A process that registers again retains its uid, and thereby its leases; its old token becomes
 * invalid.
 */
export async function putSession(sql: RunSql, session: NewSession): Promise<WorkerSession> {
  const { token, keyUid, sealedKey, teamUid, registration: worker } = session;
  const { sessionTtlMs, leaseTtlMs } = sql.timings;
  const { rows } = await sql.query<Row>(
    `INSERT INTO worker_sessions (uid, token_hash, expires_at, key_uid, key_sealed, key_checked_at, team_uid, worker_host, instance_uid, version,
                                  backend, slots, free_slots, state, labels, harnesses, harness_types, models, sandbox, sandbox_features,
                                  connected_at, last_seen_at, images, skills, arch)
     VALUES ($1, $2, clock_timestamp() + $3 * interval '1 ms', $4, $5, clock_timestamp(), $6, $7, $8, $9, $10, $11, $11, 'READY', $12::jsonb,
             $13::jsonb, $14, $15, $16, $17, clock_timestamp(), clock_timestamp(), $19, $20::jsonb, $21)
     ON CONFLICT (key_uid, instance_uid) DO UPDATE SET
       token_hash = excluded.token_hash, expires_at = excluded.expires_at, key_sealed = excluded.key_sealed, key_checked_at = excluded.key_checked_at,
       team_uid = excluded.team_uid, worker_host = excluded.worker_host, version = excluded.version, backend = excluded.backend,
       slots = excluded.slots, labels = excluded.labels, harnesses = excluded.harnesses, harness_types = excluded.harness_types,
       models = excluded.models, sandbox = excluded.sandbox, sandbox_features = excluded.sandbox_features, images = excluded.images, skills = excluded.skills, arch = excluded.arch,
       connected_at = CASE WHEN worker_sessions.last_seen_at < clock_timestamp() - $18 * interval '1 ms' THEN clock_timestamp() ELSE worker_sessions.connected_at END,
       last_seen_at = excluded.last_seen_at
     RETURNING ${COLUMNS}`,
    [
      newUid(),
      hashOf(token),
      sessionTtlMs,
      keyUid,
      sealedKey,
      teamUid ?? null,
      worker.workerHost,
      worker.instanceUid,
      worker.version,
      worker.backend,
      worker.slots,
      JSON.stringify(worker.labels),
      JSON.stringify(worker.harnesses),
      worker.harnesses.map(({ type }) => type),
      worker.models,
      worker.sandbox,
      worker.sandboxFeatures,
      leaseTtlMs,
      worker.images,
      JSON.stringify(worker.skills),
      worker.arch ?? "",
    ],
  );
  return toSession(rows[0] as Row);
}

export type FoundSession = {
  readonly session: WorkerSession;
  readonly sealedKey: string;
  readonly isKeyCheckDue: boolean;
};

/** Returns the session of a token that has not expired. */
export async function findSession(sql: RunSql, token: string): Promise<FoundSession | undefined> {
  const { rows } = await sql.query<Row>(
    `SELECT ${COLUMNS}, key_checked_at < clock_timestamp() - $2 * interval '1 ms' AS is_key_check_due
       FROM worker_sessions WHERE token_hash = $1 AND expires_at > clock_timestamp()`,
    [hashOf(token), sql.timings.keyCheckMs],
  );
  const row = rows[0];
  return row && { session: toSession(row), sealedKey: row.key_sealed, isKeyCheckDue: row.is_key_check_due };
}

/** Records that the key of a session was checked and is still valid. */
export async function markKeyChecked(sql: Sql, sessionUid: string): Promise<void> {
  await sql.query("UPDATE worker_sessions SET key_checked_at = clock_timestamp() WHERE uid = $1", [sessionUid]);
}

/** Invalidates the session's token. Its leases expire on their own. */
export async function endSession(sql: Sql, sessionUid: string): Promise<void> {
  await sql.query("UPDATE worker_sessions SET expires_at = clock_timestamp(), last_seen_at = 'epoch' WHERE uid = $1", [
    sessionUid,
  ]);
}

/** Records a heartbeat. */
export async function touchSession(
  sql: Sql,
  { uid }: Pick<WorkerSession, "uid">,
  { state, freeSlots }: { state: string; freeSlots: number },
): Promise<void> {
  await sql.query(
    "UPDATE worker_sessions SET last_seen_at = clock_timestamp(), state = $2, free_slots = $3 WHERE uid = $1",
    [uid, state, freeSlots],
  );
}

/** Deletes sessions that were last seen more than a day ago and own no leases. */
export async function sweepSessions(sql: Sql): Promise<void> {
  await sql.query(
    `DELETE FROM worker_sessions s WHERE s.last_seen_at < now() - interval '1 day'
        AND NOT EXISTS (SELECT 1 FROM leases l WHERE l.session_uid = s.uid)`,
  );
}
