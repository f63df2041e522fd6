import { isUniqueViolation, type Sql } from "@millwright/database";
import { DomainError } from "@millwright/errors";
import type { Budget, BudgetPeriod, BudgetScope, BudgetSettings, CountedPeriod, NewBudget } from "../domain/budget.ts";
import { SCRIPTED } from "../../catalog/domain/models.ts";

type Row = {
  uid: string;
  team_uid: string;
  scope: BudgetScope;
  scope_uid: string;
  period: BudgetPeriod;
  limit_micros: string;
  thresholds_percent: number[];
  version: string;
  created_at: Date;
  updated_at: Date;
};

const COLUMNS = `b.uid, b.team_uid, b.scope, b.scope_uid, b.period, b.limit_micros::text AS limit_micros, b.thresholds_percent,
  b.version::text AS version, b.created_at, b.updated_at`;

/**
 * The scopes of budgets that cover a tree, for the row `root` of `runs`. The factories service puts the automation into
 * the cause of a run.
 */
export const SCOPES_OF_ROOT = `array_remove(ARRAY[
  'team ' || root.owner_uid,
  'factory ' || root.factory_uid,
  'schedule ' || (root.schedule->>'schedule_id'),
  'automation ' || substring(root.cause_key FROM '^automation/([^/]+)/')], NULL)`;

/** Whether the run `r` may cost anything: the scripted model costs nothing. */
export const MAY_COST = `r.frozen->>'provider' IS DISTINCT FROM '${SCRIPTED}'`;

/** Whether any budget covers the tree of `runs r`. Costs teams without budgets one index lookup. */
export const IS_BUDGETED = `EXISTS (
  SELECT 1 FROM budgets b JOIN runs root ON root.uid = r.root_run_uid
   WHERE b.team_uid = r.owner_uid AND r.owner_type = 'team' AND b.scope || ' ' || b.scope_uid = ANY(${SCOPES_OF_ROOT}))`;

const BUDGETS_OF_RUN = `
  SELECT ${COLUMNS}
    FROM runs r
    JOIN runs root ON root.uid = r.root_run_uid
    JOIN budgets b ON b.team_uid = r.owner_uid AND b.scope || ' ' || b.scope_uid = ANY(${SCOPES_OF_ROOT})
   WHERE r.uid = $1 AND r.owner_type = 'team'`;

/**
 * Cost of calls under a budget in its period. `spentMicros` is the cost of completed calls, `reservedMicros` the
 * maximum cost of calls in progress. `deadReservations` counts reservations of attempts that have ended.
 */
export type BudgetSums = {
  readonly spentMicros: bigint;
  readonly reservedMicros: bigint;
  readonly deadReservations: number;
};

/**
 * Stores budgets and their running sums. Micro-dollars are passed as text, because int8 exceeds the safe integers of a
 * number.
 */
export const budgetStore = {
  async list(sql: Sql, teamUid: string): Promise<Budget[]> {
    const { rows } = await sql.query<Row>(
      `SELECT ${COLUMNS} FROM budgets b WHERE b.team_uid = $1 ORDER BY b.created_at, b.uid`,
      [teamUid],
    );
    return rows.map(toBudget);
  },

  /**
   * Returns undefined if the budget does not exist or belongs to another team. With `isLocked`, locks its row until the
   * transaction ends.
   */
  async find(sql: Sql, teamUid: string, uid: string, isLocked = false): Promise<Budget | undefined> {
    const { rows } = await sql.query<Row>(
      `SELECT ${COLUMNS} FROM budgets b WHERE b.uid = $1 AND b.team_uid = $2 ${isLocked ? "FOR UPDATE" : ""}`,
      [uid, teamUid],
    );
    return rows[0] && toBudget(rows[0]);
  },

  /** Errors: budget_exists (conflict). */
  async insert(tx: Sql, budget: NewBudget & { uid: string; teamUid: string; now: Date }): Promise<Budget> {
    try {
      const { rows } = await tx.query<Row>(
        `INSERT INTO budgets AS b (uid, team_uid, scope, scope_uid, period, limit_micros, thresholds_percent, created_at, updated_at)
         VALUES ($1, $2, $3, $4, $5, $6::bigint, $7, $8, $8)
         RETURNING ${COLUMNS}`,
        [
          budget.uid,
          budget.teamUid,
          budget.scope,
          budget.scopeUid,
          budget.period,
          String(budget.limitMicros),
          budget.thresholdsPercent,
          budget.now,
        ],
      );
      return toBudget(rows[0] as Row);
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      const message = `The team already has a budget of this ${budget.scope} for the period "${budget.period}"; change its limit instead.`;
      throw new DomainError({ kind: "conflict", reason: "budget_exists", message, cause: error });
    }
  },

  /** Stores settings and raises the version. The budget must be locked. */
  async update(tx: Sql, uid: string, { limitMicros, thresholdsPercent }: BudgetSettings, now: Date): Promise<Budget> {
    const { rows } = await tx.query<Row>(
      `UPDATE budgets b SET limit_micros = $2::bigint, thresholds_percent = $3, version = version + 1, updated_at = $4 WHERE uid = $1 RETURNING ${COLUMNS}`,
      [uid, String(limitMicros), thresholdsPercent, now],
    );
    return toBudget(rows[0] as Row);
  },

  async delete(tx: Sql, uid: string): Promise<void> {
    await tx.query("DELETE FROM budgets WHERE uid = $1", [uid]);
  },

  /**
   * Locks the budgets that cover a run, by uid, until the transaction ends, so that one transaction at a time decides
   * about the amount left in a budget.
   */
  async lockOfRun(tx: Sql, runUid: string): Promise<Budget[]> {
    const { rows } = await tx.query<Row>(`${BUDGETS_OF_RUN} ORDER BY b.uid FOR NO KEY UPDATE OF b`, [runUid]);
    return rows.map(toBudget);
  },

  /** Returns the budgets that cover a run which may cost something. */
  async ofRun(sql: Sql, runUid: string): Promise<Budget[]> {
    const { rows } = await sql.query<Row>(`${BUDGETS_OF_RUN} AND ${MAY_COST} ORDER BY b.uid`, [runUid]);
    return rows.map(toBudget);
  },

  /**
   * Returns the sums of each budget in its given period, without reservations of `exceptExecution` and of attempts that
   * have ended.
   */
  async sums(
    sql: Sql,
    counted: readonly { budget: Budget; period: CountedPeriod }[],
    exceptExecution = 0,
  ): Promise<Map<string, BudgetSums>> {
    if (counted.length === 0) return new Map();
    const { rows } = await sql.query<{ uid: string; spent: string; reserved: string; dead: number }>(
      `SELECT b.uid, coalesce(p.spent_micros, 0)::text AS spent, reservations.reserved, reservations.dead
         FROM unnest($1::uuid[], $2::timestamptz[]) AS requested (uid, period_start)
         JOIN budgets b ON b.uid = requested.uid
         LEFT JOIN budget_periods p ON p.budget_uid = b.uid AND p.period_start = requested.period_start
        CROSS JOIN LATERAL (
          SELECT coalesce(sum(c.micros) FILTER (WHERE e.id IS NOT NULL AND c.execution_id <> $3), 0)::text AS reserved, count(*) FILTER (WHERE e.id IS NULL) AS dead
            FROM cost_reservations c
            LEFT JOIN executions e ON e.id = c.execution_id AND e.attempt = c.attempt AND e.state IN ('CLAIMED', 'RUNNING')
           WHERE c.team_uid = b.team_uid AND b.scope || ' ' || b.scope_uid = ANY(c.scopes)) reservations`,
      [counted.map(({ budget }) => budget.uid), counted.map(({ period }) => period.start), exceptExecution],
    );
    return new Map(
      rows.map(({ uid, spent, reserved, dead }) => [
        uid,
        { spentMicros: BigInt(spent), reservedMicros: BigInt(reserved), deadReservations: dead },
      ]),
    );
  },

  /** Deletes reservations of a team whose attempts have ended, so that sums no longer read them. Skips locked rows. */
  async deleteDeadReservations(tx: Sql, teamUid: string): Promise<void> {
    await tx.query(
      `DELETE FROM cost_reservations WHERE execution_id IN (
         SELECT c.execution_id FROM cost_reservations c
          WHERE c.team_uid = $1
            AND NOT EXISTS (SELECT 1 FROM executions e WHERE e.id = c.execution_id AND e.attempt = c.attempt AND e.state IN ('CLAIMED', 'RUNNING'))
            FOR UPDATE SKIP LOCKED)`,
      [teamUid],
    );
  },

  /**
   * Raises the amount spent in each period, and stores until when each budget is exhausted. Returns the new sums and
   * the thresholds already published. The budgets must be locked.
   */
  async raise(
    tx: Sql,
    periods: readonly { budget: Budget; period: CountedPeriod }[],
    micros: bigint,
  ): Promise<Map<string, { spentMicros: bigint; published: readonly number[] }>> {
    const { rows } = await tx.query<{ budget_uid: string; spent: string; thresholds_reached: number[] }>(
      `WITH requested AS (SELECT * FROM unnest($1::uuid[], $2::timestamptz[], $4::timestamptz[]) AS a (uid, period_start, resets_at)),
            sums AS (
              INSERT INTO budget_periods AS p (budget_uid, period_start, spent_micros)
              SELECT requested.uid, requested.period_start, $3::bigint FROM requested
              ON CONFLICT (budget_uid, period_start) DO UPDATE SET spent_micros = p.spent_micros + excluded.spent_micros
              RETURNING p.budget_uid, p.spent_micros, p.thresholds_reached),
            ends AS (
              SELECT b.uid, CASE WHEN s.spent_micros >= b.limit_micros THEN coalesce(a.resets_at, 'infinity') END AS exhausted_until
                FROM sums s JOIN requested a ON a.uid = s.budget_uid JOIN budgets b ON b.uid = s.budget_uid),
            marked AS (
              UPDATE budgets b SET exhausted_until = e.exhausted_until FROM ends e
               WHERE b.uid = e.uid AND b.exhausted_until IS DISTINCT FROM e.exhausted_until)
       SELECT budget_uid, spent_micros::text AS spent, thresholds_reached FROM sums`,
      [
        periods.map(({ budget }) => budget.uid),
        periods.map(({ period }) => period.start),
        String(micros),
        periods.map(({ period }) => period.resetsAt ?? null),
      ],
    );
    return new Map(
      rows.map(({ budget_uid: uid, spent, thresholds_reached: published }) => [
        uid,
        { spentMicros: BigInt(spent), published },
      ]),
    );
  },

  /**
   * Stores thresholds as published. Returns the version of the budget in the first threshold's event. The budget must
   * be locked.
   */
  async publishThresholds(
    tx: Sql,
    { uid }: Budget,
    { start }: CountedPeriod,
    percents: readonly number[],
  ): Promise<bigint> {
    await tx.query(
      "UPDATE budget_periods SET thresholds_reached = thresholds_reached || $3::integer[] WHERE budget_uid = $1 AND period_start = $2",
      [uid, start, percents],
    );
    const { rows } = await tx.query<{ version: string }>(
      "UPDATE budgets SET version = version + $2 WHERE uid = $1 RETURNING version::text AS version",
      [uid, percents.length],
    );
    return BigInt((rows[0] as { version: string }).version) - BigInt(percents.length - 1);
  },
};

export type BudgetStore = typeof budgetStore;

const toBudget = (row: Row): Budget => ({
  uid: row.uid,
  teamUid: row.team_uid,
  scope: row.scope,
  scopeUid: row.scope_uid,
  period: row.period,
  limitMicros: BigInt(row.limit_micros),
  thresholdsPercent: row.thresholds_percent,
  version: BigInt(row.version),
  createdAt: row.created_at,
  updatedAt: row.updated_at,
});
