import { sendTo, type Sql } from "@millwright/database";
import type { RunChange } from "../domain/run-change.ts";

/**
 * Whether a change ends an attempt that a worker had accepted. An attempt that its client executes uses no sandbox of
 * the platform, so it does not count.
 */
export const endsAttempt = ({ run: { execution }, next }: RunChange): boolean =>
  next.lease === "release" && execution.lease?.isAccepted === true && !execution.isLocal;

/**
 * Records for how long the ending attempt of an execution used its sandbox, and the shape of the sandbox. Must run
 * before the update of the execution, which resets the time of the claim. The time from the claim until another machine
 * takes over the dispatched attempt does not count as compute, because no sandbox runs yet.
 */
export function recordComputeInterval(tx: Sql, { run: { execution } }: RunChange): Promise<void> {
  const { id, lease } = execution;
  const isWaitingForMachine = lease?.dispatcherUid !== undefined && lease.dispatcherUid === lease.sessionUid;
  return sendTo(tx, INSERT, [id, isWaitingForMachine]);
}

/**
 * A worker also reports 0 vCPUs if the runner requests at least as many as the machine has. The requested shape counts
 * then.
 */
const INSERT = `
  INSERT INTO compute_intervals (run_uid, execution_id, attempt, started_at, ended_at, vcpus, memory_gb)
  SELECT x.run_uid,
         x.id,
         x.attempt,
         CASE WHEN $2::boolean THEN ending.at ELSE x.claimed_at END,
         ending.at,
         coalesce(nullif(x.sandbox_vcpus, 0), (r.frozen #>> '{instance_shape,vcpus}')::float8, 0),
         coalesce(nullif(x.sandbox_memory_gb, 0), (r.frozen #>> '{instance_shape,memory_gb}')::float8, 0)
    FROM executions x
    JOIN runs r ON r.uid = x.run_uid
   CROSS JOIN LATERAL (SELECT greatest(x.claimed_at, clock_timestamp()) AS at OFFSET 0) ending
   WHERE x.id = $1
  ON CONFLICT DO NOTHING`;
