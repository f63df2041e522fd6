import { uidOf } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import type { ComputeInterval, CostOwner, ModelCall, RunSnapshot } from "./run-snapshot.ts";

/** One version of the price book of compute and the platform; micro-dollars. */
export type ComputePrice = {
  readonly version: number;
  readonly vcpuHourMicros: bigint;
  readonly gbHourMicros: bigint;
  readonly platformRunMicros: bigint;
  readonly effectiveFrom: Date;
};

/** One use of something that has a price. `sourceKey` is derived from what was used, so that it is recorded once. */
export type LedgerEntry = {
  readonly sourceKey: string;
  readonly component: "inference" | "compute" | "platform";
  readonly kind: "model_call" | "compute_interval" | "platform_charge";
  readonly occurredAt: Date;
  /** Undefined: not priced. */
  readonly micros: bigint | undefined;
  readonly priceVersion: number | undefined;
  readonly quantity: Readonly<Record<string, string | number>>;
  readonly owner: CostOwner;
};

/** What the price book prices of a run. */
export type PricedRun = Pick<RunSnapshot, "uid" | "createdAt" | "costOwner" | "computeIntervals">;

/**
 * Returns the entries of a run: its model calls, the time of its sandboxes and one charge for the run, which may be 0.
 */
export const ledgerEntries = (run: RunSnapshot, prices: readonly ComputePrice[]): LedgerEntry[] => [
  ...run.modelCalls.map((call) => modelCallEntry(run, call)),
  ...pricedEntries(run, prices),
];

/** Returns the entries of a run that are priced by the price book. */
export const pricedEntries = (run: PricedRun, prices: readonly ComputePrice[]): LedgerEntry[] => [
  ...run.computeIntervals.map((interval) => computeEntry(run, interval, priceAt(prices, interval.startedAt))),
  platformEntry(run, priceAt(prices, run.createdAt)),
];

/**
 * Returns the micro-dollars of an interval, rounded half up once; undefined: a dimension has a price, but is not known.
 * vCPUs and gigabytes count to six decimal places, time to the millisecond.
 */
export function computeMicros(
  { startedAt, endedAt, vcpus, memoryGb }: ComputeInterval,
  price: ComputePrice,
): bigint | undefined {
  if ((vcpus === 0 && price.vcpuHourMicros > 0n) || (memoryGb === 0 && price.gbHourMicros > 0n)) return undefined;
  const ms = BigInt(Math.max(0, endedAt.getTime() - startedAt.getTime()));
  const numerator = ms * (millionths(vcpus) * price.vcpuHourMicros + millionths(memoryGb) * price.gbHourMicros);
  const denominator = 3_600_000n * 1_000_000n;
  return (2n * numerator + denominator) / (2n * denominator);
}

const millionths = (value: number): bigint => BigInt(Math.round(value * 1e6));

/** Returns the price in force at a time; of versions from the same time on, the newest. */
export function priceAt(prices: readonly ComputePrice[], at: Date): ComputePrice | undefined {
  return prices
    .filter(({ effectiveFrom }) => effectiveFrom <= at)
    .toSorted((a, b) => a.effectiveFrom.getTime() - b.effectiveFrom.getTime() || a.version - b.version)
    .at(-1);
}

function modelCallEntry(run: RunSnapshot, call: ModelCall): LedgerEntry {
  return {
    sourceKey: uidOf(`model_call ${run.uid} ${call.callId}`),
    component: "inference",
    kind: "model_call",
    occurredAt: call.recordedAt,
    micros: call.costMicros,
    priceVersion: call.priceVersion,
    quantity: {
      call_id: call.callId,
      model_id: call.modelId,
      ...omitUndefined({
        input_tokens: call.inputTokens,
        output_tokens: call.outputTokens,
        cache_read_tokens: call.cacheReadTokens,
        cache_write_tokens: call.cacheWriteTokens,
      }),
    },
    owner: run.inferenceOwner,
  };
}

function computeEntry(run: PricedRun, interval: ComputeInterval, price: ComputePrice | undefined): LedgerEntry {
  const { executionId, attempt, startedAt, endedAt, vcpus, memoryGb } = interval;
  return {
    sourceKey: uidOf(`compute_interval ${run.uid} ${executionId} ${attempt}`),
    component: "compute",
    kind: "compute_interval",
    occurredAt: startedAt,
    micros: price && computeMicros(interval, price),
    priceVersion: price?.version,
    quantity: {
      execution_id: executionId,
      attempt,
      seconds: Math.max(0, endedAt.getTime() - startedAt.getTime()) / 1000,
      vcpus,
      memory_gb: memoryGb,
    },
    owner: run.costOwner,
  };
}

const platformEntry = (run: PricedRun, price: ComputePrice | undefined): LedgerEntry => ({
  sourceKey: uidOf(`platform_charge ${run.uid}`),
  component: "platform",
  kind: "platform_charge",
  occurredAt: run.createdAt,
  micros: price?.platformRunMicros ?? 0n,
  priceVersion: price?.version,
  quantity: { runs: 1 },
  owner: run.costOwner,
});
