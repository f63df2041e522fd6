import { actorOf, requirePlatformAdmin, type Caller } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import { clampPageSize, type Cursors } from "@millwright/paging";
import { checkNewModelPrice, priceInThePast, type ModelPrice, type NewModelPrice } from "../domain/model-price.ts";
import { once } from "../../storage/store/idempotency-store.ts";
import type { ModelPriceStore } from "../store/model-price-store.ts";
import type { Transaction } from "../../storage/store/transaction.ts";

export type ModelPricesDeps = {
  readonly sql: Sql;
  readonly cursors: Cursors;
  readonly transaction: Transaction;
  readonly modelPrices: Pick<ModelPriceStore, "list" | "insert">;
};

type Page = { readonly modelId: string | undefined; readonly pageSize: number; readonly pageToken: string };

const LIST = "model prices";

/** Returns versions of prices by model, newest first. Errors: invalid_cursor. */
export async function listModelPrices(
  { sql, cursors, modelPrices }: ModelPricesDeps,
  { modelId, pageSize, pageToken }: Page,
): Promise<{ readonly prices: readonly ModelPrice[]; readonly nextPageToken: string }> {
  const bind = { model: modelId ?? "" };
  const limit = clampPageSize(pageSize, { default: 50, max: 100 });
  const [afterModel, afterVersion] = pageToken === "" ? [] : (cursors.open(LIST, bind, pageToken) as [string, number]);
  const after = afterModel === undefined ? undefined : { modelId: afterModel, version: afterVersion! };
  const found = await modelPrices.list(sql, modelId, after, limit + 1);
  const prices = found.slice(0, limit);
  const last = found.length > limit ? prices.at(-1) : undefined;
  return { prices, nextPageToken: last ? cursors.seal(LIST, bind, [last.modelId, last.version]) : "" };
}

/**
 * Adds a version of a model's price, once per key. The price of recorded calls is unchanged.
 *
 * Errors: not_authorized unless a platform administrator calls · price_invalid · idempotency_mismatch (conflict).
 */
export async function addModelPrice(
  { sql, transaction, modelPrices }: ModelPricesDeps,
  caller: Caller,
  requested: NewModelPrice,
  key: string,
): Promise<ModelPrice> {
  requirePlatformAdmin(caller, "Adding a model price");
  const price = checkNewModelPrice(requested);
  const actor = actorOf(caller);
  const body = [
    price.modelId,
    ...[price.inputPerMillionMicros, price.outputPerMillionMicros].map(String),
    ...[price.cacheReadPerMillionMicros, price.cacheWritePerMillionMicros].map((micros) => micros?.toString() ?? null),
    price.effectiveFrom?.toISOString() ?? null,
  ];
  const version = await transaction((tx) =>
    once(tx, { principalUid: actor.uid, operation: "model price", key, body }, async () => {
      const added = await modelPrices.insert(tx, price, { type: actor.type, uid: actor.uid });
      if (!added) throw priceInThePast(price.effectiveFrom!);
      return added.version;
    }),
  );
  const [added] = await modelPrices.list(sql, price.modelId, { modelId: price.modelId, version: version + 1 }, 1);
  return added!;
}
