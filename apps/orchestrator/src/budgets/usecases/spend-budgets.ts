import type { Clock } from "@millwright/clock";
import { budgetEvents } from "../events/budget-events.ts";
import type { BudgetStore } from "../store/budget-store.ts";
import type { Sql } from "@millwright/database";
import { newThresholds, periodAt, type Budget, type CountedPeriod, type LimitingBudget } from "../domain/budget.ts";

type InPeriod = { readonly budget: Budget; readonly period: CountedPeriod };

export type SpendBudgetsDeps = {
  readonly clock: Pick<Clock, "now">;
  readonly budgets: Pick<BudgetStore, "lockOfRun" | "sums" | "deleteDeadReservations" | "raise" | "publishThresholds">;
};

/**
 * Locks the budgets that cover a run until the transaction ends. Returns them with what is spent, and what other
 * executions have reserved.
 */
export async function lockBudgets(
  deps: SpendBudgetsDeps,
  tx: Sql,
  runUid: string,
  exceptExecution: number,
): Promise<LimitingBudget[]> {
  const covering = await lockInPeriod(deps, tx, runUid);
  if (covering.length === 0) return [];
  // A separate statement, so that it sees what was committed while the lock was awaited.
  const sums = await deps.budgets.sums(tx, covering, exceptExecution);
  if ([...sums.values()].some(({ deadReservations }) => deadReservations > 0))
    await deps.budgets.deleteDeadReservations(tx, covering[0]!.budget.teamUid);
  return covering.flatMap((each) => limiting(each, sums.get(each.budget.uid)));
}

export type ReadBudgetsDeps = {
  readonly sql: Sql;
  readonly clock: Pick<Clock, "now">;
  readonly budgets: Pick<BudgetStore, "ofRun" | "sums">;
};

/** Returns the budgets that cover a run which may have costs, with what is spent and reserved. */
export async function readBudgets({ budgets, clock, sql }: ReadBudgetsDeps, runUid: string): Promise<LimitingBudget[]> {
  const covering = inPeriodAt(await budgets.ofRun(sql, runUid), clock.now());
  const sums = await budgets.sums(sql, covering);
  return covering.flatMap((each) => limiting(each, sums.get(each.budget.uid)));
}

/** Returns no limit for a budget that was deleted after it was read. */
const limiting = (
  { budget, period }: InPeriod,
  sum: { readonly spentMicros: bigint; readonly reservedMicros: bigint } | undefined,
): LimitingBudget[] =>
  sum
    ? [
        {
          budget,
          period,
          limitMicros: budget.limitMicros,
          spentMicros: sum.spentMicros,
          reservedMicros: sum.reservedMicros,
        },
      ]
    : [];

/**
 * Counts the cost of a recorded call against the budgets that cover its run. Publishes the thresholds that are reached.
 */
export async function spendBudgets(deps: SpendBudgetsDeps, tx: Sql, runUid: string, micros: bigint): Promise<void> {
  const covering = await lockInPeriod(deps, tx, runUid);
  if (covering.length === 0) return;
  const sums = await deps.budgets.raise(tx, covering, micros);
  for (const { budget, period } of covering) {
    const sum = sums.get(budget.uid);
    if (sum) await publishReached(deps, tx, { budget, period }, sum);
  }
}

/** Publishes each threshold of a locked budget that its spending has reached in a period, once. */
export async function publishReached(
  deps: { readonly budgets: Pick<BudgetStore, "publishThresholds"> },
  tx: Sql,
  { budget, period }: InPeriod,
  { spentMicros, published }: { readonly spentMicros: bigint; readonly published: readonly number[] },
): Promise<void> {
  const reached = newThresholds(budget, spentMicros, published);
  if (reached.length === 0) return;
  const version = await deps.budgets.publishThresholds(tx, budget, period, reached);
  for (const [n, percent] of reached.entries())
    await budgetEvents.thresholdReached(tx, { ...budget, version: version + BigInt(n) }, percent, spentMicros, period);
}

async function lockInPeriod({ budgets, clock }: SpendBudgetsDeps, tx: Sql, runUid: string): Promise<InPeriod[]> {
  return inPeriodAt(await budgets.lockOfRun(tx, runUid), clock.now());
}

/** Returns each budget with the period that contains `now`. */
export const inPeriodAt = (budgets: readonly Budget[], now: Date): InPeriod[] =>
  budgets.map((budget) => ({ budget, period: periodAt(budget, now) }));
