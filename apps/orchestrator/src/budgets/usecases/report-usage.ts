import type { Sql } from "@millwright/database";
import { invalidArgument } from "@millwright/errors";
import { dropAbsent } from "../../catalog/domain/agent-config.ts";
import type { NewRunEvent } from "../../runs/domain/run-events.ts";
import {
  costOf,
  costUnderLimits,
  type ModelAccess,
  type PriceVersion,
  type TokenCounts,
} from "../../catalog/domain/usage.ts";
import type { LeaseRef } from "../../runs/domain/worker-session.ts";
import type { RequireLease } from "../../runs/usecases/require-lease.ts";
import type { Transaction } from "../../storage/store/transaction.ts";

export type ReportUsageDeps = {
  readonly transaction: Transaction;
  readonly requireLease: RequireLease;
  readonly appendRunEvents: (tx: Sql, runUid: string, events: readonly NewRunEvent[]) => Promise<void>;
  readonly usage: {
    currentPrice(sql: Sql, modelId: string): Promise<PriceVersion | undefined>;
    insert(
      tx: Sql,
      usage: LeaseRef & {
        runUid: string;
        callId: string;
        modelId: string;
        tokens: TokenCounts;
        costMicros?: bigint;
        /** What the call counts against limits and budgets, if that is not its cost. */
        limitedMicros?: bigint;
        priceVersion?: number;
        access?: ModelAccess;
      },
    ): Promise<{ provider: string; isBudgeted: boolean } | undefined>;
  };
  /** Counts the cost of a recorded call against the budgets that cover the run. */
  readonly spendBudgets: (tx: Sql, runUid: string, micros: bigint) => Promise<void>;
  /**
   * Releases the cost that the execution had reserved for the call, and returns it. Undefined: nothing was reserved, or
   * the call was recorded before, so that the reservation belongs to a later call.
   */
  readonly releaseCost: (
    tx: Sql,
    call: { readonly executionId: number; readonly runUid: string; readonly callId: string },
  ) => Promise<bigint | undefined>;
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
    const reservedMicros = await deps.releaseCost(tx, { executionId: lease.executionId, runUid, callId });
    const price = await deps.usage.currentPrice(tx, modelId);
    const pricedMicros = costOf(tokens, price);
    const costMicros = statedMicros ?? pricedMicros;
    const limitedMicros = costUnderLimits({ statedMicros, pricedMicros, reservedMicros, access });
    const inserted = await deps.usage.insert(tx, {
      ...{ ...lease, runUid, callId, modelId, tokens },
      ...(access ? { access } : {}),
      ...(costMicros === undefined ? {} : { costMicros }),
      ...(limitedMicros === undefined || limitedMicros === costMicros ? {} : { limitedMicros }),
      ...(statedMicros !== undefined || costMicros === undefined || !price ? {} : { priceVersion: price.version }),
    });
    if (inserted?.isBudgeted && limitedMicros) await deps.spendBudgets(tx, runUid, limitedMicros);
    if (inserted)
      await deps.appendRunEvents(tx, runUid, [usageRecorded({ lease, callId, modelId, tokens, isEstimated })]);
    return inserted && { ...inserted, costMicros };
  });
  if (recorded) deps.countUsage?.(recorded.provider, tokens, recorded.costMicros);
  return { isBudgeted: recorded?.isBudgeted ?? false };
}

const usageRecorded = ({ lease, callId, modelId, tokens, isEstimated }: UsageReport): NewRunEvent => ({
  kind: "usage_recorded",
  executionId: lease.executionId,
  payload: dropAbsent({
    ...{ call_id: callId, model_id: modelId, input_tokens: tokens.input, output_tokens: tokens.output },
    ...{ input_cache_read_tokens: tokens.cacheRead, input_cache_write_tokens: tokens.cacheWrite },
    estimated: isEstimated || undefined,
  }),
});
