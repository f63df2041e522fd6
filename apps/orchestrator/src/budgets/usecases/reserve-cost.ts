import type { ModelPriceStore } from "../../catalog/store/model-price-store.ts";
import type { CostStore } from "../store/cost-store.ts";
import { lockBudgets, type SpendBudgetsDeps } from "./spend-budgets.ts";
import { invalidArgument } from "@millwright/errors";
import { decideCost, type CostDecision } from "../domain/cost-limit.ts";
import { costOf } from "../../catalog/domain/call-cost.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { RequireLease } from "../../runs/usecases/require-lease.ts";
import type { Transaction } from "../../storage/store/transaction.ts";

export type ReserveCostDeps = SpendBudgetsDeps & {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly modelPrices: Pick<ModelPriceStore, "current">;
  readonly costs: Pick<CostStore, "lockTree" | "limitsOf" | "reserve" | "release">;
};

export type PlannedCall = {
  readonly lease: LeaseRef;
  readonly modelId: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
};

/**
 * Reserves the maximum cost of a model call before the call is made. All runs of a tree share what remains of the
 * limits above them, and all runs under a budget share what remains of it. The costs therefore exceed a limit by less
 * than one call, regardless of how many runs request concurrently. A repeated call replaces the reservation of the
 * execution.
 *
 * Errors: lease_lost · cost_limit_unpriced · usage_invalid.
 */
export async function reserveCost(
  deps: ReserveCostDeps,
  { lease, modelId, inputTokens, outputTokens }: PlannedCall,
): Promise<CostDecision> {
  if (![inputTokens, outputTokens].every((count) => Number.isSafeInteger(count) && count >= 0))
    throw invalidArgument("usage_invalid", "Token counts must be whole numbers of at least 0.");
  return deps.transaction(async (tx) => {
    const { runUid } = await deps.requireLease(tx, lease.executionId, lease.attempt);
    await deps.costs.lockTree(tx, runUid);
    const limits = [
      ...(await deps.costs.limitsOf(tx, runUid, lease.executionId)),
      ...(await lockBudgets(deps, tx, runUid, lease.executionId)),
    ];
    const decision = decideCost(runUid, limits);
    if (decision.outcome !== "granted" || limits.length === 0) {
      await deps.costs.release(tx, lease.executionId);
      return decision;
    }
    const micros = costOf({ input: inputTokens, output: outputTokens }, await deps.modelPrices.current(tx, modelId));
    if (micros === undefined)
      throw invalidArgument(
        "cost_limit_unpriced",
        `The cost limit or budget of this run cannot be enforced: the model "${modelId}" has no price here.`,
      );
    await deps.costs.reserve(tx, { ...lease, runUid, micros });
    return decision;
  });
}
