import { once } from "../../storage/store/idempotency-store.ts";
import { budgetEvents } from "../events/budget-events.ts";
import type { BudgetStore } from "../store/budget-store.ts";
import { actorOf, requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { notFound } from "@millwright/errors";
import { isUuid, newUid } from "@millwright/ids";
import {
  checkLimit,
  checkNewBudget,
  checkThresholds,
  periodAt,
  type RequestedBudget,
  type Budget,
  type BudgetSettings,
  type CountedPeriod,
} from "../domain/budget.ts";
import type { Transaction } from "../../storage/store/transaction.ts";
import { inPeriodAt, publishReached } from "./spend-budgets.ts";

export type BudgetsDeps = {
  readonly sql: Sql;
  readonly clock: Clock;
  readonly transaction: Transaction;
  readonly budgets: BudgetStore;
};

/** A budget and its current period. */
export type BudgetView = {
  readonly budget: Budget;
  readonly period: CountedPeriod;
  readonly spentMicros: bigint;
  readonly reservedMicros: bigint;
};

/** A budget as it was created, as JSON. */
type CreatedBudget = Omit<Budget, "limitMicros" | "version" | "createdAt" | "updatedAt"> &
  Readonly<Record<"limitMicros" | "version" | "createdAt" | "updatedAt" | "spentMicros" | "reservedMicros", string>>;

/** Returns a team's budgets, oldest first. Errors: team_not_found · not_authorized. */
export async function listBudgets(deps: BudgetsDeps, caller: Caller, teamUid: string): Promise<BudgetView[]> {
  requireVerb(caller, teamUid, "run.view", "team");
  return viewsOf(deps, await deps.budgets.list(deps.sql, teamUid));
}

/** Returns one budget of a team. Errors: team_not_found · not_authorized · budget_not_found. */
export async function getBudget(deps: BudgetsDeps, caller: Caller, teamUid: string, uid: string): Promise<BudgetView> {
  requireVerb(caller, teamUid, "run.view", "team");
  return viewOf(deps, await requireBudget(deps, deps.sql, teamUid, uid));
}

/**
 * Creates a budget, once per key. It counts the costs that are recorded after its creation. A repeated request returns
 * it as it was created.
 *
 * Errors: team_not_found · not_authorized · budget_invalid · budget_exists, idempotency_mismatch (conflict).
 */
export async function createBudget(
  deps: BudgetsDeps,
  caller: Caller,
  requested: RequestedBudget,
  key = "",
): Promise<BudgetView> {
  requireVerb(caller, requested.teamUid, "team.manage", "team");
  const checked = checkNewBudget(requested);
  const body = [
    requested.teamUid,
    checked.scope,
    checked.scopeUid,
    checked.period,
    String(checked.limitMicros),
    checked.thresholdsPercent,
  ];
  // The previous version stored only the uid. Such results have expired 24 hours after the upgrade.
  type Stored = CreatedBudget | Pick<CreatedBudget, "uid">;
  const stored = await deps.transaction((tx) =>
    once<Stored>(tx, { principalUid: actorOf(caller).uid, operation: "budget", key, body }, async () => {
      const budget = await deps.budgets.insert(tx, {
        ...checked,
        uid: newUid(),
        teamUid: requested.teamUid,
        now: deps.clock.now(),
      });
      await budgetEvents.created(tx, budget, caller);
      return toCreated(await viewOf({ ...deps, sql: tx }, budget, budget.createdAt));
    }),
  );
  return "createdAt" in stored
    ? createdView(stored)
    : viewOf(deps, await requireBudget(deps, deps.sql, requested.teamUid, stored.uid));
}

/** Changes the given settings. Errors: team_not_found · not_authorized · budget_not_found · budget_invalid. */
export async function updateBudget(
  deps: BudgetsDeps,
  caller: Caller,
  {
    teamUid,
    uid,
    limitMicros,
    thresholdsPercent,
  }: { readonly teamUid: string; readonly uid: string } & Partial<BudgetSettings>,
): Promise<BudgetView> {
  requireVerb(caller, teamUid, "team.manage", "team");
  const changes = {
    ...(limitMicros === undefined ? {} : { limitMicros: checkLimit(limitMicros) }),
    ...(thresholdsPercent === undefined ? {} : { thresholdsPercent: checkThresholds(thresholdsPercent) }),
  };
  const changed = [
    ...(limitMicros === undefined ? [] : ["limit_usd"]),
    ...(thresholdsPercent === undefined ? [] : ["thresholds_percent"]),
  ];
  const budget = await deps.transaction(async (tx) => {
    const before = await requireBudget(deps, tx, teamUid, uid, true);
    if (changed.length === 0) return before;
    const after = await deps.budgets.update(tx, uid, { ...before, ...changes }, deps.clock.now());
    await budgetEvents.updated(tx, after, changed, caller);
    await publishPassed(deps, tx, after);
    return after;
  });
  return viewOf(deps, budget);
}

/** Publishes the thresholds that are reached because the limit was lowered. */
async function publishPassed(deps: BudgetsDeps, tx: Sql, budget: Budget): Promise<void> {
  const period = periodAt(budget, deps.clock.now());
  const sum = (await deps.budgets.raise(tx, [{ budget, period }], 0n)).get(budget.uid);
  if (sum) await publishReached(deps, tx, { budget, period }, sum);
}

/** Deletes a budget. It no longer limits runs. Errors: team_not_found · not_authorized · budget_not_found. */
export async function deleteBudget(deps: BudgetsDeps, caller: Caller, teamUid: string, uid: string): Promise<void> {
  requireVerb(caller, teamUid, "team.manage", "team");
  await deps.transaction(async (tx) => {
    const budget = await requireBudget(deps, tx, teamUid, uid, true);
    await deps.budgets.delete(tx, uid);
    await budgetEvents.deleted(tx, { ...budget, version: budget.version + 1n }, caller);
  });
}

/** Errors: budget_not_found. */
async function requireBudget(
  { budgets }: BudgetsDeps,
  sql: Sql,
  teamUid: string,
  uid: string,
  isLocked = false,
): Promise<Budget> {
  const budget = isUuid(uid) ? await budgets.find(sql, teamUid, uid, isLocked) : undefined;
  if (!budget) throw notFound("budget");
  return budget;
}

const toCreated = ({ budget, spentMicros, reservedMicros }: BudgetView): CreatedBudget => ({
  ...budget,
  limitMicros: String(budget.limitMicros),
  version: String(budget.version),
  createdAt: budget.createdAt.toISOString(),
  updatedAt: budget.updatedAt.toISOString(),
  spentMicros: String(spentMicros),
  reservedMicros: String(reservedMicros),
});

function createdView({ spentMicros, reservedMicros, ...created }: CreatedBudget): BudgetView {
  const budget = {
    ...created,
    limitMicros: BigInt(created.limitMicros),
    version: BigInt(created.version),
    createdAt: new Date(created.createdAt),
    updatedAt: new Date(created.updatedAt),
  };
  return {
    budget,
    period: periodAt(budget, budget.createdAt),
    spentMicros: BigInt(spentMicros),
    reservedMicros: BigInt(reservedMicros),
  };
}

const viewOf = async (deps: BudgetsDeps, budget: Budget, now?: Date): Promise<BudgetView> =>
  (await viewsOf(deps, [budget], now))[0]!;

async function viewsOf(
  { budgets, clock, sql }: BudgetsDeps,
  listed: readonly Budget[],
  now = clock.now(),
): Promise<BudgetView[]> {
  const requested = inPeriodAt(listed, now);
  const sums = await budgets.sums(sql, requested);
  return requested.map(({ budget, period }) => ({
    budget,
    period,
    spentMicros: sums.get(budget.uid)?.spentMicros ?? 0n,
    reservedMicros: sums.get(budget.uid)?.reservedMicros ?? 0n,
  }));
}
