import { sendTo, type Sql } from "@millwright/database";
import type { RunUid } from "@millwright/ids";
import type { LossPolicy } from "../../catalog/domain/agent-config.ts";
import type { SandboxShape } from "../domain/sandbox-shape.ts";
import type { RunSql } from "./run-sql.ts";

/** Returns the parent of a run. Reads without a lock, because it never changes. */
export async function parentOf(sql: Sql, runUid: string): Promise<RunUid | undefined> {
  const { rows } = await sql.query<{ parent: RunUid | null }>(
    "SELECT parent_run_uid AS parent FROM runs WHERE uid = $1",
    [runUid],
  );
  return rows[0]?.parent ?? undefined;
}

export async function setSandboxRunning(sql: Sql, executionId: number, isRunning: boolean): Promise<void> {
  await sql.query("UPDATE executions SET sandbox_running = $2 WHERE id = $1 AND state <> 'ENDED'", [
    executionId,
    isRunning,
  ]);
}

/** Records the limits of the current attempt's sandbox. */
export async function setSandboxShape(tx: Sql, executionId: number, { vcpus, memoryGb }: SandboxShape): Promise<void> {
  await sendTo(tx, "UPDATE executions SET sandbox_vcpus = $2, sandbox_memory_gb = $3 WHERE id = $1", [
    executionId,
    vcpus,
    memoryGb,
  ]);
}

/** Records that the stall of an execution was reported. */
export async function markStallWarned(sql: Sql, executionId: number): Promise<void> {
  await sql.query("UPDATE executions SET stall_warned_at = clock_timestamp() WHERE id = $1", [executionId]);
}

/** Returns the policy of the agent's configuration for the loss of a worker. */
export async function onWorkerLoss(sql: Sql, runUid: string): Promise<LossPolicy> {
  const { rows } = await sql.query<{ policy: string | null }>(
    "SELECT frozen->>'on_worker_loss' AS policy FROM runs WHERE uid = $1",
    [runUid],
  );
  return rows[0]?.policy === "fail" ? "fail" : "resume";
}

/** Returns how long a worker retains the workspace of the run's failed setup, in milliseconds; 0: it does not. */
export async function debugWindowMs(sql: RunSql, runUid: string): Promise<number> {
  const { rows } = await sql.query<{ minutes: number }>(
    "SELECT coalesce((frozen->>'failure_session_retention_minutes')::float8, 0) AS minutes FROM runs WHERE uid = $1",
    [runUid],
  );
  return Math.round((rows[0]?.minutes ?? 0) * sql.timings.debugMinuteMs);
}
