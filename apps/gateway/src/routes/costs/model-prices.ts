import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { z } from "zod";
import type { orchestrator } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import { toDollars, toMicros } from "@millwright/money";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { cursor, instant, pageInfo, PageInfo, pageLimit, route, timestamp, type Route } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";
import { Actor, priceAmount } from "./prices.ts";

const PER_MILLION = "Dollars per million tokens.";
const CACHED = "Dollars per million tokens; null: cached tokens cost as much as input.";

const ModelPrice = z
  .object({
    model_id: z.string(),
    version: z.int().meta({ description: "Of this model, from 1." }),
    input_per_million_usd: z.number().meta({ description: PER_MILLION }),
    output_per_million_usd: z.number().meta({ description: `${PER_MILLION} Reasoning tokens count as output.` }),
    cache_read_per_million_usd: z.number().nullable().meta({ description: CACHED }),
    cache_write_per_million_usd: z.number().nullable().meta({ description: CACHED }),
    effective_from: timestamp().meta({ description: "Of versions with the same time, the newest applies." }),
    created_at: timestamp(),
    created_by: Actor.nullable().meta({ description: "null: created by the installation." }),
  })
  .meta({ id: "ModelPrice" });

const PATH = "/platform/model-prices";

/** Returns the routes of the price book of models. Millwright extension. */
export function modelPriceRoutes({ modelPrices }: Pick<Upstreams, "modelPrices">): Route[] {
  return [
    route({
      method: "GET",
      path: PATH,
      extension: true,
      summary: "List the versions of the price book of models",
      description: "By model, newest first. Readable by every caller. Versions are immutable.",
      query: z.object({
        model_id: z.string().min(1).max(200).optional(),
        limit: pageLimit(50),
        cursor: cursor(),
      }),
      response: z.object({ prices: z.array(ModelPrice), page_info: PageInfo }),
      handler: async (input) => {
        const { model_id: modelId = "", limit, cursor: pageToken = "" } = input.query;
        const found = await modelPrices.listModelPrices({ modelId, pageSize: limit, pageToken }, onBehalf(input));
        return { prices: found.prices.map(priceRecord), page_info: pageInfo(found.nextPageToken) };
      },
    }),
    route({
      method: "POST",
      path: PATH,
      extension: true,
      summary: "Add a version to the price book of models (platform administrators)",
      description:
        "Applies to calls that are recorded from `effective_from` on. The price of recorded calls does not change, so a time in the past is rejected.",
      errors: [403, 409],
      idempotent: true,
      status: 201,
      body: z.object({
        model_id: z.string().min(1).max(200),
        input_per_million_usd: priceAmount(),
        output_per_million_usd: priceAmount(),
        cache_read_per_million_usd: priceAmount().optional(),
        cache_write_per_million_usd: priceAmount().optional(),
        effective_from: instant().optional().meta({ description: "Absent: now." }),
      }),
      response: ModelPrice,
      handler: async (input) => {
        const { body, request } = input;
        const [cacheRead, cacheWrite] = [body.cache_read_per_million_usd, body.cache_write_per_million_usd];
        const added = await modelPrices.addModelPrice(
          {
            modelId: body.model_id,
            inputMicros: toMicros(body.input_per_million_usd),
            outputMicros: toMicros(body.output_per_million_usd),
            ...omitUndefined({
              cacheReadMicros: cacheRead === undefined ? undefined : toMicros(cacheRead),
              cacheWriteMicros: cacheWrite === undefined ? undefined : toMicros(cacheWrite),
              effectiveFrom: body.effective_from && timestampFromDate(body.effective_from),
            }),
            idempotencyKey: request.idempotency?.key ?? "",
          },
          onBehalf(input),
        );
        return priceRecord(added.price!);
      },
    }),
  ];
}

const dollarsOrNull = (micros: bigint | undefined): number | null => (micros === undefined ? null : toDollars(micros));

const priceRecord = (price: orchestrator.ModelPrice): z.input<typeof ModelPrice> => ({
  model_id: price.modelId,
  version: price.version,
  input_per_million_usd: toDollars(price.inputMicros),
  output_per_million_usd: toDollars(price.outputMicros),
  cache_read_per_million_usd: dollarsOrNull(price.cacheReadMicros),
  cache_write_per_million_usd: dollarsOrNull(price.cacheWriteMicros),
  effective_from: isoTime(price.effectiveFrom!),
  created_at: isoTime(price.createdAt!),
  created_by: price.createdByType ? { type: price.createdByType, uid: price.createdByUid } : null,
});
