import { create } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { metrics } from "@millwright/contracts";
import { optionalTimestamp, served } from "@millwright/rpc";
import type { ComputePriceRecord } from "../store/compute-price-store.ts";
import type { CreditGrant } from "../store/credit-store.ts";
import { addComputePrice, listPriceVersions, type ComputePricesDeps } from "../usecases/compute-prices.ts";
import { getCreditBalance, grantCredits, listCreditGrants, type CreditsDeps } from "../usecases/credits.ts";

export type PriceMethodsDeps = ComputePricesDeps & CreditsDeps;

/** The price book, and credits of teams. */
export const priceMethods = (deps: PriceMethodsDeps): ServiceImpl<typeof metrics.PriceService> => ({
  listComputePrices: served(async ({ pageSize, pageToken }: metrics.ListComputePricesRequest) => {
    const { prices, nextPageToken } = await listPriceVersions(deps, { pageSize, pageToken });
    return { prices: prices.map(priceMessage), nextPageToken };
  }),
  addComputePrice: served(async ({ effectiveFrom, ...request }: metrics.AddComputePriceRequest, caller) => ({
    price: priceMessage(await addComputePrice(deps, caller, { ...request, effectiveFrom: dateOf(effectiveFrom) })),
  })),
  getCreditBalance: served(async ({ teamUid }: metrics.GetCreditBalanceRequest, caller) => {
    const balance = await getCreditBalance(deps, caller, teamUid);
    return {
      grantedMicros: balance.granted,
      spentMicros: balance.spent,
      expiredMicros: balance.expired,
      remainingMicros: balance.remaining,
      overdrawnMicros: balance.overdrawn,
      asOf: timestampFromDate(balance.asOf),
    };
  }),
  listCreditGrants: served(async ({ teamUid, pageSize, pageToken }: metrics.ListCreditGrantsRequest, caller) => {
    const { grants, nextPageToken } = await listCreditGrants(deps, caller, { teamUid, pageSize, pageToken });
    return { grants: grants.map(grantMessage), nextPageToken };
  }),
  grantCredits: served(
    async ({ teamUid, micros, note, expiresAt, idempotencyKey }: metrics.GrantCreditsRequest, caller) => {
      const request = { teamUid, micros, note, expiresAt: dateOf(expiresAt), idempotencyKey };
      return { grant: grantMessage(await grantCredits(deps, caller, request)) };
    },
  ),
});

const dateOf = (time: Timestamp | undefined): Date | undefined => time && timestampDate(time);

const priceMessage = ({ repricing, ...price }: ComputePriceRecord): metrics.ComputePrice =>
  create(metrics.ComputePriceSchema, {
    version: price.version,
    vcpuHourMicros: price.vcpuHourMicros,
    gbHourMicros: price.gbHourMicros,
    platformRunMicros: price.platformRunMicros,
    effectiveFrom: timestampFromDate(price.effectiveFrom),
    createdAt: timestampFromDate(price.createdAt),
    createdBy: price.createdBy,
    repricing: {
      completedAt: optionalTimestamp(repricing.completedAt),
      runCount: repricing.runCount,
      correctionCount: repricing.correctionCount,
      correctedMicros: repricing.correctedMicros,
    },
  });

const grantMessage = ({ uid, teamUid, micros, note, ...grant }: CreditGrant): metrics.CreditGrant =>
  create(metrics.CreditGrantSchema, {
    ...{ uid, teamUid, micros, note, createdBy: grant.createdBy },
    grantedAt: timestampFromDate(grant.grantedAt),
    expiresAt: optionalTimestamp(grant.expiresAt),
  });
