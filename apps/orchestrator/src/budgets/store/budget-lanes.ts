import type { Database, Sql } from "@millwright/database";
import { topics } from "../../storage/wakeups.ts";
import { MAY_COST, SCOPES_OF_ROOT } from "./budget-store.ts";

/** The columns (besides `is_background`) in which a lane that waits for a budget equals the lane that does not. */
const KEY = ["owner_type", "owner_uid", "agent_uid", "factory_uid", "worker_host", "harness", "image", "arch"];
const keyOf = (lane: string): string => [...KEY, "is_background"].map((column) => `${lane}.${column}`).join(", ");
const isSameLane = (lane: string, otherLane: string): string =>
  `${lane}.owner_uid = ${otherLane}.owner_uid AND (${keyOf(lane)}) IS NOT DISTINCT FROM (${keyOf(otherLane)})`;

/** Maximum number of executions moved from one lane in one transaction. */
const MOVED_MAX = 256;

/**
 * Returns the condition that a team (a column or parameter) has an exhausted budget. Costs one lookup in an index of
 * exhausted budgets.
 */
export const hasExhaustedBudget = (teamUid: string): string =>
  `EXISTS (SELECT 1 FROM budgets b WHERE b.team_uid = ${teamUid} AND b.exhausted_until > clock_timestamp())`;

/**
 * Exhausted budgets that cover the run `r`, the one exhausted for longest first. Runs of the scripted model cost
 * nothing, so no budget covers them.
 */
export const EXHAUSTED_BUDGETS_OF_RUN = `
  SELECT b.uid FROM runs root JOIN budgets b ON b.team_uid = root.owner_uid AND b.exhausted_until > clock_timestamp()
   WHERE root.uid = r.root_run_uid AND root.owner_type = 'team' AND b.scope || ' ' || b.scope_uid = ANY(${SCOPES_OF_ROOT})
     AND ${MAY_COST}
   ORDER BY b.exhausted_until DESC, b.uid`;

/**
 * Moves those of a lane's first executions that exhausted budgets cover to lanes that no claim reads; returns their
 * number. Skips runs whose row another transaction has locked. If a budget is raised concurrently, the next
 * `requeueFunded` moves its executions back.
 */
export async function moveExhausted(tx: Sql, laneId: number): Promise<number> {
  const { rows } = await tx.query<{ id: number; budget_uid: string }>(
    `WITH first AS MATERIALIZED (
       SELECT e.id, e.run_uid, e.depth FROM executions e
        WHERE e.lane_id = $1 AND e.state = 'QUEUED' ORDER BY e.depth DESC, e.id LIMIT ${MOVED_MAX})
     SELECT f.id, x.uid AS budget_uid
       FROM first f
       JOIN runs r ON r.uid = f.run_uid AND r.state = 'QUEUED'
      CROSS JOIN LATERAL (${EXHAUSTED_BUDGETS_OF_RUN} LIMIT 1) x
        FOR NO KEY UPDATE OF r SKIP LOCKED`,
    [laneId],
  );
  if (rows.length === 0) return 0;
  const [ids, budgets] = [rows.map(({ id }) => id), rows.map(({ budget_uid: uid }) => uid)];
  await tx.query(
    `INSERT INTO lanes (${[...KEY, "is_background"].join(", ")}, waits_for_budget)
     SELECT ${keyOf("l")}, waited.uid FROM lanes l, unnest($2::uuid[]) AS waited (uid) WHERE l.id = $1 ON CONFLICT DO NOTHING`,
    [laneId, [...new Set(budgets)]],
  );
  await tx.query(
    `UPDATE executions e SET lane_id = waiting.id
       FROM unnest($2::bigint[], $3::uuid[]) AS moved (id, budget_uid), lanes l, lanes waiting
      WHERE e.id = moved.id AND e.state = 'QUEUED' AND l.id = $1 AND waiting.waits_for_budget = moved.budget_uid AND ${isSameLane("waiting", "l")}`,
    [laneId, ids, budgets],
  );
  return rows.length;
}

/** Maximum number of executions requeued in one statement. */
const REQUEUED_MAX = 1_000;

/**
 * Requeues executions whose budget was raised, was deleted, or began a new period; returns their number. If another
 * exhausted budget covers an execution, the next claim makes it wait again.
 */
export async function requeueFunded(database: Database): Promise<number> {
  for (let total = 0; ;) {
    const count = await database.transaction(async (tx) => {
      const { rowCount } = await tx.query(
        `WITH funded AS MATERIALIZED (
           SELECT l.id FROM lanes l
            WHERE l.waits_for_budget IS NOT NULL
              AND NOT EXISTS (SELECT 1 FROM budgets b WHERE b.uid = l.waits_for_budget AND b.exhausted_until > clock_timestamp())),
         waiting AS MATERIALIZED (
           SELECT e.id, e.lane_id FROM funded f
             JOIN executions e ON e.lane_id = f.id AND e.state = 'QUEUED'
             JOIN runs r ON r.uid = e.run_uid AND r.state = 'QUEUED'
            LIMIT ${REQUEUED_MAX}
              FOR NO KEY UPDATE OF r SKIP LOCKED)
         UPDATE executions e SET lane_id = l.id
           FROM waiting w, lanes before, lanes l
          WHERE e.id = w.id AND e.state = 'QUEUED' AND before.id = w.lane_id AND l.waits_for_budget IS NULL AND ${isSameLane("l", "before")}`,
      );
      if (rowCount > 0) tx.announce?.(topics.work);
      return rowCount;
    });
    total += count;
    if (count < REQUEUED_MAX) return total;
  }
}
