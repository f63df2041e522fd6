import type { ModelPriceStore } from "../../catalog/store/model-price-store.ts";
import { appendRunEvents } from "../../runs/store/run-events-store.ts";
import type { CostStore } from "../store/cost-store.ts";
import type { UsageStore } from "../store/usage-store.ts";
import { spendBudgets, type SpendBudgetsDeps } from "./spend-budgets.ts";
import { invalidArgument } from "@millwright/errors";
import { omitUndefined } from "@millwright/json";
import type { NewRunEvent } from "../../runs/domain/run-events.ts";
import { costOf, costUnderLimits } from "../../catalog/domain/call-cost.ts";
import type { ModelAccess, TokenCounts } from "../../catalog/domain/usage.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { RequireLease } from "../../runs/usecases/require-lease.ts";
import type { Transaction } from "../../storage/store/transaction.ts";

export type ReportUsageDeps = SpendBudgetsDeps & {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly modelPrices: Pick<ModelPriceStore, "current">;
  readonly usage: Pick<UsageStore, "insert">;
  readonly costs: Pick<CostStore, "releaseForCall">;
  /** Called once for each recorded call. */
  readonly countUsage?: (provider: string, tokens: TokenCounts, costMicros: bigint | undefined) => void;
};

export type UsageReport = {
  readonly lease: LeaseRef;
  readonly callId: string;
  readonly modelId: string;
  readonly tokens: TokenCounts;
  /** The call was aborted, and the worker has estimated the tokens that the provider had not counted. */
  readonly isEstimated?: boolean;
  readonly access?: ModelAccess;
  /**
   * The cost that the provider states, in millionths of a dollar. It takes precedence over the price, but not under
   * limits and budgets if the team chose the provider's address.
   */
  readonly statedMicros?: bigint;
};

/** One million dollars. */
const STATED_MICROS_MAX = 1_000_000_000_000n;

/**
 * Records the tokens of one model call with the cost that its provider states, or else with the cost at the current
 * price. Limits and budgets may count another cost (`costUnderLimits`). A call is recorded once; a repeated report
 * changes nothing. Returns whether a budget covers the run, so that further calls must be reserved.
 *
 * Errors: lease_lost · usage_invalid.
 */
export async function reportUsage(
  deps: ReportUsageDeps,
  { lease, callId, modelId, tokens, isEstimated = false, access, statedMicros }: UsageReport,
): Promise<{ readonly isBudgeted: boolean }> {
  if (callId === "" || callId.length > 200 || modelId === "" || modelId.length > 200)
    throw invalidArgument("usage_invalid", "call_id and model_id must have 1 to 200 characters.");
  const counts = Object.values(tokens).filter((count) => count !== undefined);
  if (!counts.every((count) => Number.isSafeInteger(count) && count >= 0))
    throw invalidArgument("usage_invalid", "Token counts must be whole numbers of at least 0.");
  if (statedMicros !== undefined && (statedMicros < 0n || statedMicros > STATED_MICROS_MAX))
    throw invalidArgument(
      "usage_invalid",
      `cost_micros must be between 0 and ${STATED_MICROS_MAX} (got ${statedMicros}).`,
    );
  const recorded = await deps.transaction(async (tx) => {
    const { runUid } = await deps.requireLease(tx, lease.executionId, lease.attempt);
    const reservedMicros = await deps.costs.releaseForCall(tx, { executionId: lease.executionId, runUid, callId });
    const price = await deps.modelPrices.current(tx, modelId);
    const pricedMicros = costOf(tokens, price);
    const costMicros = statedMicros ?? pricedMicros;
    const limitedMicros = costUnderLimits({ statedMicros, pricedMicros, reservedMicros, access });
    const inserted = await deps.usage.insert(tx, {
      ...{ ...lease, runUid, callId, modelId, tokens },
      access,
      costMicros,
      limitedMicros: limitedMicros === undefined || limitedMicros === costMicros ? undefined : limitedMicros,
      priceVersion: statedMicros !== undefined || costMicros === undefined || !price ? undefined : price.version,
    });
    if (inserted?.isBudgeted && limitedMicros) await spendBudgets(deps, tx, runUid, limitedMicros);
    if (inserted) await appendRunEvents(tx, runUid, [usageRecorded({ lease, callId, modelId, tokens, isEstimated })]);
    return inserted && { ...inserted, costMicros };
  });
  if (recorded) deps.countUsage?.(recorded.provider, tokens, recorded.costMicros);
  return { isBudgeted: recorded?.isBudgeted ?? false };
}

const usageRecorded = ({ lease, callId, modelId, tokens, isEstimated }: UsageReport): NewRunEvent => ({
  kind: "usage_recorded",
  executionId: lease.executionId,
  payload: omitUndefined({
    ...{ call_id: callId, model_id: modelId, input_tokens: tokens.input, output_tokens: tokens.output },
    ...{ input_cache_read_tokens: tokens.cacheRead, input_cache_write_tokens: tokens.cacheWrite },
    estimated: isEstimated || undefined,
  }),
});
