import { expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { answers, seen, millwright } = fakeApi();

const PATH = "/api/v1/platform/model-prices";
const PRICE = {
  model_id: "m",
  version: 2,
  input_per_million_usd: 3,
  output_per_million_usd: 15,
  cache_read_per_million_usd: 0.3,
  cache_write_per_million_usd: null,
  effective_from: "2026-12-01T00:00:00.000Z",
};
const page = (prices: object[], next_cursor?: string) => ({
  status: 200,
  body: { prices, page_info: { has_next_page: next_cursor !== undefined, ...(next_cursor && { next_cursor }) } },
});

test("lists the versions of a model from all pages", async () => {
  answers[`GET ${PATH}?model_id=m&limit=100`] = page([PRICE], "c");
  answers[`GET ${PATH}?model_id=m&limit=100&cursor=c`] = page([{ ...PRICE, version: 1 }]);
  const { code, out } = await millwright("model-price", "list", "--model", "m");
  const [heading, newest, first] = out.split("\n");
  expect([code, heading]).toEqual([0, expect.stringContaining("CACHE READ")]);
  expect(newest).toMatch(/^m .*2 .*\$3 .*\$15 .*\$0\.3 .*as input/);
  expect(first).toMatch(/^m .*1 /);
});

test("adds a version", async () => {
  answers[`POST ${PATH}`] = { status: 201, body: PRICE };
  const words = ["model-price", "add", "m", "3", "15", "--cache-read", "0.3", "--from", "2026-12-01"];
  expect(await millwright(...words)).toMatchObject({
    code: 0,
    out: "version 2 of m applies from 2026-12-01T00:00:00.000Z on.",
  });
  expect(seen[0]?.body).toEqual({
    model_id: "m",
    input_per_million_usd: 3,
    output_per_million_usd: 15,
    cache_read_per_million_usd: 0.3,
    effective_from: "2026-12-01",
  });
});

test.each([["INPUT_USD"], ["--cache-read"]])("rejects a %s that is no number, and sends nothing", async (name) => {
  const words = name === "INPUT_USD" ? ["m", "x", "15"] : ["m", "3", "15", "--cache-read", "x"];
  expect(await millwright("model-price", "add", ...words)).toMatchObject({
    code: 2,
    err: expect.stringContaining(`${name} must be a number (got`),
  });
  expect(seen).toEqual([]);
});
