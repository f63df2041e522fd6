import { actorOf, requirePlatformAdmin, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { invalidArgument } from "@millwright/errors";
import { idempotentRequest } from "@millwright/idempotency";
import type { Cursors } from "@millwright/paging";
import { enqueueWork } from "@millwright/work";
import { insertComputePrice, listComputePrices, type ComputePriceRecord } from "../store/compute-price-store.ts";
import { repricingStore } from "../store/repricing-store.ts";
import { pageSizeOf } from "./page-size.ts";
import { REPRICE_RUNS } from "./reprice-runs.ts";
import { responses } from "../store/idempotency.ts";

export type ComputePricesDeps = { readonly database: Database; readonly clock: Clock; readonly cursors: Cursors };

export type AddComputePriceRequest = {
  readonly vcpuHourMicros: bigint;
  readonly gbHourMicros: bigint;
  readonly platformRunMicros: bigint;
  /** Undefined: now. */
  readonly effectiveFrom: Date | undefined;
  readonly idempotencyKey: string;
};

const LIST = "compute prices";
/** A million dollars. */
const MICROS_MAX = 1_000_000_000_000n;

/** Lists the versions of the price book, newest first. Errors: limit_invalid · invalid_cursor. */
export async function listPriceVersions(
  { database, cursors }: ComputePricesDeps,
  { pageSize, pageToken }: { readonly pageSize: number; readonly pageToken: string },
): Promise<{ readonly prices: readonly ComputePriceRecord[]; readonly nextPageToken: string }> {
  const limit = pageSizeOf(pageSize);
  const [before] = pageToken === "" ? [] : (cursors.open(LIST, {}, pageToken) as [number]);
  const rows = await listComputePrices(database.searches, before, limit + 1);
  const prices = rows.slice(0, limit);
  const last = rows.length > limit ? prices.at(-1) : undefined;
  return { prices, nextPageToken: last ? cursors.seal(LIST, {}, [last.version]) : "" };
}

/**
 * Adds a version to the price book, once per key. If it does not apply only from the future on, enqueues the re-pricing
 * of earlier charges. Returns the version as it was added, before its re-pricing.
 *
 * Errors: not_authorized unless a platform administrator calls · price_invalid · idempotency_mismatch (conflict).
 */
export async function addComputePrice(
  { database, clock }: ComputePricesDeps,
  caller: Caller,
  request: AddComputePriceRequest,
): Promise<ComputePriceRecord> {
  requirePlatformAdmin(caller, "Adding a version to the price book");
  const { idempotencyKey, ...price } = checkPrice(request);
  const { type, uid } = actorOf(caller);
  const idempotency = idempotentRequest(uid, "compute price", idempotencyKey, {
    ...price,
    vcpuHourMicros: String(price.vcpuHourMicros),
    gbHourMicros: String(price.gbHourMicros),
    platformRunMicros: String(price.platformRunMicros),
    effectiveFrom: price.effectiveFrom?.toISOString(),
  });
  const version = await database.transaction((tx) => {
    const now = clock.now();
    return responses.once(tx, idempotency, now, async () => {
      const effectiveFrom = price.effectiveFrom ?? now;
      const added = await insertComputePrice(tx, { ...price, effectiveFrom, createdAt: now, createdBy: { type, uid } });
      if (effectiveFrom <= now) {
        await repricingStore.start(tx, added);
        await enqueueWork(tx, { kind: REPRICE_RUNS, key: String(added), payload: {} });
      }
      return added;
    });
  });
  return asAdded((await listComputePrices(database.sql, version + 1, 1))[0]!);
}

/** Returns the first record of a version. Versions cannot be changed, so only its re-pricing may have progressed. */
const asAdded = (price: ComputePriceRecord): ComputePriceRecord => ({
  ...price,
  repricing: {
    completedAt: price.effectiveFrom <= price.createdAt ? undefined : price.createdAt,
    runCount: 0n,
    correctionCount: 0n,
    correctedMicros: 0n,
  },
});

function checkPrice(price: AddComputePriceRequest): AddComputePriceRequest {
  for (const [name, micros] of [
    ["vcpu_hour_usd", price.vcpuHourMicros],
    ["gb_hour_usd", price.gbHourMicros],
    ["platform_run_usd", price.platformRunMicros],
  ] as const)
    if (micros < 0n || micros > MICROS_MAX)
      throw invalidArgument("price_invalid", `${name} must be between 0 and 1000000 (got ${Number(micros) / 1e6}).`);
  return price;
}
