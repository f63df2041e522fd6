import type { Database } from "@millwright/database";
import type { Timings } from "../../src/runs/domain/timings.ts";
import type { WorkerSession } from "../../src/runs/domain/worker-session.ts";
import { ackDirectives, pendingDirectiveReader } from "../../src/runs/store/directive-store.ts";
import { findJobs } from "../../src/leases/store/job-store.ts";
import { runsOfExecutions } from "../../src/runs/store/locked-runs.ts";
import { findRunOfLease, renewLeases } from "../../src/leases/store/lease-store.ts";
import { claim } from "../../src/leases/store/queue-store.ts";
import { tickReaper } from "../../src/leases/store/reaper-store.ts";
import { visibleRunReader } from "../../src/runs/store/run-store.ts";
import { runTransactions } from "../../src/runs/store/run-transaction.ts";
import { teamOf } from "../support/platform.ts";
import type { Cast } from "./cast.ts";
import { leaseText, statusText } from "./memory-world.ts";
import type { RawView } from "./view.ts";
import type { World } from "./world.ts";

/** The product's store, for the runs of a cast. Time passes only by explicit calls. */
export async function sqlWorld(database: Database, timings: Timings, cast: Cast): Promise<World> {
  const { sql } = database;
  const owners = cast.callers.map(teamOf);
  await sql.query("UPDATE capacity SET last_start = 0"); // resets the queue's clock
  return {
    runs: runTransactions(database, timings),
    claim: async (session, slots) =>
      (await claim(database, session, slots, timings.offerTtlMs)).toSorted((a, b) => a.executionId - b.executionId),
    runsOfExecutions: (executionIds) => runsOfExecutions(sql, executionIds),
    findJobs: (session, leases) => findJobs(sql, session, leases),
    findRunOfLease: (session, lease) => findRunOfLease(sql, session, lease),
    renewLeases: (session, leases) => renewLeases({ ...sql, timings }, session, leases),
    ackDirectives: (session, acks) => ackDirectives(sql, session, acks),
    listPendingDirectives: pendingDirectiveReader(sql),
    async tick(after) {
      await sql.query("UPDATE reaper_ticks SET last_tick = clock_timestamp()");
      return tickReaper(database, timings, after);
    },
    ...visibleRunReader(database),
    async addSession({ uid, workerHost, teamUid, slots, harnessTypes, images }) {
      await sql.query(
        `INSERT INTO worker_sessions (uid, token_hash, expires_at, key_uid, key_sealed, key_checked_at, team_uid, worker_host, instance_uid, version, backend, slots, free_slots,
                                      state, labels, harnesses, harness_types, models, sandbox, sandbox_features, connected_at, last_seen_at, images)
         VALUES ($1::uuid, convert_to($1::uuid::text, 'UTF8'), 'infinity', 'key', '', now(), $2, $3, $1::uuid::text, '1', 'test', $4, $4, 'READY', '{}', '[]', $5, '{}', 'none', '{}', now(), now(), $6)`,
        [uid, teamUid ?? null, workerHost, slots, harnessTypes, images],
      );
      return {
        uid,
        workerHost,
        harnessTypes,
        images,
        keyUid: "key",
        state: "READY",
        teamUid,
      } satisfies WorkerSession;
    },
    async expire(executionId) {
      await sql.query(
        "UPDATE leases SET expires_at = clock_timestamp() - interval '1 second' WHERE execution_id = $1",
        [executionId],
      );
    },
    async endGrace(executionId) {
      await sql.query(
        "UPDATE leases SET fence_at = clock_timestamp() - interval '1 second' WHERE execution_id = $1 AND fence_at IS NOT NULL",
        [executionId],
      );
    },
    raw: () => readRaw(database, owners, cast),
    close: async () => {},
  };
}

async function readRaw({ sql }: Database, owners: readonly string[], { agents, factoryUid }: Cast): Promise<RawView> {
  const ours = "run_uid IN (SELECT uid FROM runs WHERE owner_uid = ANY($1::uuid[]))";
  const rows = async <T>(text: string): Promise<T[]> => (await sql.query<T>(text, [owners])).rows;
  const runs = await rows<{
    uid: string;
    state: string;
    message: string | null;
    code: string | null;
    prompt: string | null;
  }>(
    "SELECT uid, state, status_message AS message, error_code AS code, submitted_prompt AS prompt FROM runs WHERE owner_uid = ANY($1::uuid[])",
  );
  type Execution = Omit<RawView["executions"][number], "lease"> & {
    leaseAttempt: number | null;
    accepted: boolean;
    stopping: boolean;
  };
  const executions = await rows<Execution>(
    `SELECT x.id, x.run_uid AS "runUid", x.seq, x.state, x.attempt, x.accepted_attempt AS "acceptedAttempt", x.retained_attempts AS "retainedAttempts", x.outcome, x.setup_losses AS "setupLosses", x.run_losses AS "runLosses",
            l.attempt AS "leaseAttempt", l.accepted, l.fence_at IS NOT NULL AS stopping
       FROM executions x LEFT JOIN leases l ON l.execution_id = x.id WHERE x.${ours}`,
  );
  const { rows: capacity } = await sql.query<RawView["capacity"][number]>(
    `SELECT scope || ' ' || uid AS scope, in_use AS "inUse", virtual_time AS "virtualTime", last_start AS "lastStart" FROM capacity WHERE uid = ANY($1::uuid[])`,
    [[...owners, ...agents, factoryUid]],
  );
  return {
    runs: runs.map(({ uid, state, message, code, prompt }) => ({
      uid,
      state,
      prompt,
      status: message === null ? null : statusText(message, code ?? undefined),
    })),
    executions: executions.map(({ leaseAttempt, accepted, stopping, ...one }) => ({
      ...one,
      lease: leaseAttempt === null ? null : leaseText(leaseAttempt, accepted, stopping),
    })),
    waits: await rows(`SELECT run_uid AS "runUid", policy, run_uids::text[] AS "runUids" FROM waits WHERE ${ours}`),
    messages: await rows(
      `SELECT uid, run_uid AS "runUid", seq, kind, text, execution_id AS "executionId", taken_as AS "takenAs", delivered_at IS NOT NULL AS "isDelivered", undeliverable AS "isUndeliverable"
         FROM messages WHERE ${ours}`,
    ),
    events: await rows(
      `SELECT run_uid AS "runUid", seq, kind, execution_id AS "executionId", attempt, payload FROM stream.run_events WHERE ${ours}`,
    ),
    capacity,
  };
}
