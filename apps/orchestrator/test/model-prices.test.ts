import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { aCaller, domainError } from "@millwright/testing";
import { modelPriceStore } from "../src/catalog/store/model-price-store.ts";
import { catalogPlatform, type CatalogPlatform } from "./support/catalog-platform.ts";

let p: CatalogPlatform;
const admin = { ...aCaller(), platformAdmin: true };
beforeAll(async () => void (p = await catalogPlatform()));
afterAll(() => p.close());

const PRICE = { inputMicros: 3_000_000n, outputMicros: 15_000_000n };
const add = (price: object, caller = admin) => p.modelPrices.addModelPrice({ ...PRICE, ...price }, p.as(caller));
const versionsOf = async (modelId: string) =>
  (await p.modelPrices.listModelPrices({ modelId }, p.as(aCaller()))).prices.map(({ version, inputMicros }) => [
    version,
    inputMicros,
  ]);
const inForce = async (modelId: string): Promise<string> =>
  String((await modelPriceStore.current(p.database.sql, modelId))?.inputPerMillionMicros);

test("adds versions of a model, which every caller may list, newest first", async () => {
  await add({ modelId: "a" });
  const { price } = await add({ modelId: "a", inputMicros: 4_000_000n, cacheReadMicros: 0n });
  expect(price).toMatchObject({
    modelId: "a",
    version: 2,
    inputMicros: 4_000_000n,
    cacheReadMicros: 0n,
    createdByType: "user",
    createdByUid: admin.principal.uid,
  });
  expect(price?.cacheWriteMicros).toBeUndefined();
  expect(await versionsOf("a")).toEqual([
    [2, 4_000_000n],
    [1, 3_000_000n],
  ]);
});

test("a version with a later time applies from then on, in whichever order versions were added", async () => {
  const later = timestampFromDate(new Date(Date.now() + 3_600_000));
  await add({ modelId: "later", inputMicros: 1n });
  await add({ modelId: "later", inputMicros: 2n, effectiveFrom: later });
  await add({ modelId: "later", inputMicros: 3n });
  expect(await inForce("later")).toBe("3");
  await p.database.sql.query(
    "UPDATE model_prices SET effective_from = now() - interval '1 second' WHERE model_id = 'later' AND version <> 2",
  );
  await p.database.sql.query(
    "UPDATE model_prices SET effective_from = now() - interval '0.5 seconds' WHERE model_id = 'later' AND version = 2",
  );
  expect(await inForce("later")).toBe("2");
});

test("lists all models in pages", async () => {
  for (const modelId of ["page/a", "page/B", "page/b"]) await add({ modelId });
  const seen: string[] = [];
  let pageToken = "";
  do {
    const page = await p.modelPrices.listModelPrices({ pageSize: 2, pageToken }, p.as(aCaller()));
    expect(page.prices.length).toBeLessThanOrEqual(2);
    seen.push(...page.prices.map(({ modelId, version }) => `${modelId} ${version}`));
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  expect(seen).toEqual([...new Set(seen)]);
  expect(seen.filter((name) => name.startsWith("page/"))).toEqual(["page/B 1", "page/a 1", "page/b 1"]);
});

test("a repeated request with the same key adds one version, and another body under the key is a conflict", async () => {
  const request = { modelId: "once", idempotencyKey: "k" };
  expect((await add(request)).price!.version).toBe(1);
  expect((await add(request)).price!.version).toBe(1);
  await expect(add({ ...request, outputMicros: 1n })).rejects.toEqual(
    domainError({ kind: "conflict", reason: "idempotency_mismatch" }),
  );
  expect(await versionsOf("once")).toHaveLength(1);
});

test("concurrent versions of a model have consecutive numbers", async () => {
  await Promise.all(Array.from({ length: 10 }, () => add({ modelId: "race" })));
  expect((await versionsOf("race")).map(([version]) => version)).toEqual([10, 9, 8, 7, 6, 5, 4, 3, 2, 1]);
});

test.each([
  ["an empty model", { modelId: "" }],
  ["a model with a space", { modelId: "a b" }],
  ["a negative price", { inputMicros: -1n }],
  ["a price over a million dollars", { cacheWriteMicros: 1_000_000_000_001n }],
  ["a time in the past", { effectiveFrom: timestampFromDate(new Date("2026-01-01T00:00:00Z")) }],
])("refuses %s and adds nothing", async (_, change) => {
  await expect(add({ modelId: "refused", ...change })).rejects.toEqual(
    domainError({ kind: "invalid_argument", reason: "price_invalid" }),
  );
  expect(await versionsOf("refused")).toEqual([]);
});

test("refuses everyone but platform administrators", async () => {
  await expect(add({ modelId: "denied" }, { ...admin, platformAdmin: false })).rejects.toEqual(
    domainError({ kind: "permission_denied", reason: "not_authorized" }),
  );
  expect(await versionsOf("denied")).toEqual([]);
});
