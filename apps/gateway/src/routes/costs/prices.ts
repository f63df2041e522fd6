import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { z } from "zod";
import type { metrics } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { toDollars, toMicros } from "@millwright/money";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { cursor, instant, pageInfo, PageInfo, pageLimit, route, timestamp, type Route } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";

/** An amount in dollars within inclusive bounds, with at most 6 decimal places. */
export const dollarAmount = (min: number, max: number) =>
  z
    .number()
    .min(min)
    .max(max)
    .refine(isWholeMicros, "must be whole micro-dollars: at most 6 decimal places")
    .meta({ type: "number", minimum: min, maximum: max });

const isWholeMicros = (dollars: number): boolean => Number(dollars.toFixed(6)) === dollars;

/** Returns the schema of a price in dollars. */
export const priceAmount = () => dollarAmount(0, 1_000_000);

export const Actor = z.object({ type: z.string(), uid: z.string() });

const ComputePrice = z
  .object({
    version: z.int(),
    vcpu_hour_usd: z.number().meta({ description: "Per vCPU and hour." }),
    gb_hour_usd: z.number().meta({ description: "Per gigabyte of memory and hour." }),
    platform_run_usd: z.number().meta({ description: "Once per run." }),
    effective_from: timestamp().meta({ description: "Of versions with the same time, the newest applies." }),
    created_at: timestamp(),
    created_by: Actor.nullable().meta({ description: "null: created by the installation." }),
    repricing: z
      .object({
        status: z.enum(["running", "complete"]),
        completed_at: timestamp().nullable(),
        run_count: z.int().meta({ description: "Affected runs that have been priced again." }),
        correction_count: z.int().meta({ description: "Ledger entries that correct an earlier entry." }),
        corrected_usd: z
          .number()
          .meta({ description: "Sum of the corrections. Negative: the total charge decreased." }),
      })
      .meta({ description: "Corrections of charges that were recorded before the version was added." }),
  })
  .meta({ id: "ComputePrice" });

const PATH = "/platform/compute-prices";

/** Returns the routes of the price book of compute and the platform. Millwright extension. */
export function priceRoutes({ prices }: Pick<Upstreams, "prices">): Route[] {
  return [
    route({
      method: "GET",
      path: PATH,
      extension: true,
      summary: "List the versions of the price book of compute and the platform",
      description: "Newest first. Readable by every caller. Versions are immutable.",
      query: z.object({ limit: pageLimit(50), cursor: cursor() }),
      response: z.object({ prices: z.array(ComputePrice), page_info: PageInfo }),
      handler: async (input) => {
        const { limit, cursor: pageToken = "" } = input.query;
        const found = await prices.listComputePrices({ pageSize: limit, pageToken }, onBehalf(input));
        return { prices: found.prices.map(priceRecord), page_info: pageInfo(found.nextPageToken) };
      },
    }),
    route({
      method: "POST",
      path: PATH,
      extension: true,
      summary: "Add a version to the price book (platform administrators)",
      description:
        "If `effective_from` is in the past, charges since then are corrected in the background by further ledger entries; " +
        "`repricing` reports the progress.",
      errors: [403, 409],
      idempotent: true,
      status: 201,
      body: z.object({
        vcpu_hour_usd: priceAmount(),
        gb_hour_usd: priceAmount(),
        platform_run_usd: priceAmount(),
        effective_from: instant().optional().meta({ description: "Absent: now." }),
      }),
      response: ComputePrice,
      handler: async (input) => {
        const { body, request } = input;
        const added = await prices.addComputePrice(
          {
            vcpuHourMicros: toMicros(body.vcpu_hour_usd),
            gbHourMicros: toMicros(body.gb_hour_usd),
            platformRunMicros: toMicros(body.platform_run_usd),
            ...omitUndefined({ effectiveFrom: body.effective_from && timestampFromDate(body.effective_from) }),
            idempotencyKey: request.idempotency?.key ?? "",
          },
          onBehalf(input),
        );
        return priceRecord(added.price!);
      },
    }),
  ];
}

export const actorRecord = ({ type, uid }: metrics.Actor) => ({ type, uid });

function priceRecord({ repricing, createdBy, ...version }: metrics.ComputePrice): z.input<typeof ComputePrice> {
  const completedAt = repricing?.completedAt;
  return {
    version: version.version,
    vcpu_hour_usd: toDollars(version.vcpuHourMicros),
    gb_hour_usd: toDollars(version.gbHourMicros),
    platform_run_usd: toDollars(version.platformRunMicros),
    effective_from: isoTime(version.effectiveFrom!),
    created_at: isoTime(version.createdAt!),
    created_by: createdBy ? actorRecord(createdBy) : null,
    repricing: {
      status: completedAt ? "complete" : "running",
      completed_at: completedAt ? isoTime(completedAt) : null,
      run_count: Number(repricing?.runCount ?? 0),
      correction_count: Number(repricing?.correctionCount ?? 0),
      corrected_usd: toDollars(repricing?.correctedMicros ?? 0n),
    },
  };
}
