import { expect, test } from "@jest/globals";
import { fakeApi } from "./fake-api.ts";

const { answers, seen, millwright } = fakeApi();

const PRICES = "/api/v1/platform/compute-prices";
const PRICE = {
  version: 2,
  vcpu_hour_usd: 0.04,
  gb_hour_usd: 0.005,
  platform_run_usd: 0.00025,
  effective_from: "2026-11-01T00:00:00.000Z",
  repricing: { status: "complete", correction_count: 12, corrected_usd: -3.5 },
};
const GRANT = { amount_usd: 500, note: "November", granted_at: "2026-11-01T00:00:00.000Z", expires_at: null };

test("the versions of the price book are listed from all pages", async () => {
  const page = (prices: object[], next_cursor?: string) => ({
    status: 200,
    body: { prices, page_info: { has_next_page: next_cursor !== undefined, ...(next_cursor && { next_cursor }) } },
  });
  answers[`GET ${PRICES}?limit=100`] = page([PRICE], "c");
  answers[`GET ${PRICES}?limit=100&cursor=c`] = page([{ ...PRICE, version: 1, vcpu_hour_usd: 0 }]);
  const { code, out } = await millwright("price", "list");
  const [heading, newest, first] = out.split("\n");
  expect([code, heading]).toEqual([0, expect.stringContaining("VCPU HOUR")]);
  expect(newest).toMatch(/^2 .*\$0\.04 .*\$0\.005 .*\$0\.00025 .*complete .*12 .*\$-3\.50/);
  expect(first).toMatch(/^1 /);
});

test("a version is added, from now on or from an earlier time", async () => {
  answers[`POST ${PRICES}`] = { status: 201, body: PRICE };
  expect(await millwright("price", "add", "0.04", "0.005", "0.00025", "--from", "2026-11-01")).toMatchObject({
    code: 0,
    out: "version 2 of the price book applies from 2026-11-01T00:00:00.000Z on.",
  });
  await millwright("price", "add", "0.04", "0.005", "0");
  expect(seen.map(({ body }) => body)).toEqual([
    { vcpu_hour_usd: 0.04, gb_hour_usd: 0.005, platform_run_usd: 0.00025, effective_from: "2026-11-01" },
    { vcpu_hour_usd: 0.04, gb_hour_usd: 0.005, platform_run_usd: 0 },
  ]);
  expect(await millwright("price", "add", "cheap", "0", "0")).toMatchObject({
    code: 2,
    err: expect.stringContaining("VCPU_HOUR_USD must be a number (got"),
  });
});

test("credits are shown with their grants", async () => {
  const sums = { granted_usd: 500, spent_usd: 123.456, expired_usd: 0, remaining_usd: 376.544, overdrawn_usd: 0 };
  answers["GET /api/v1/team/t1/credits"] = {
    status: 200,
    body: { ...sums, as_of: "2026-11-20T10:00:00.000Z", grants: [GRANT], page_info: { has_next_page: false } },
  };
  const { code, out } = await millwright("credit", "show");
  expect([code, out]).toEqual([0, expect.stringMatching(/complete up to 2026-11-20T10:00:00\.000Z/)]);
  expect(out).toMatch(/spent +\$123\.46/);
  expect(out).toMatch(/never +\$500\.00 +November/);
});

test("credits are granted to one's own team, or to any other", async () => {
  for (const team of ["t1", "t2"]) answers[`POST /api/v1/team/${team}/credits`] = { status: 201, body: GRANT };
  expect(await millwright("credit", "grant", "500", "--note", "November")).toMatchObject({
    code: 0,
    out: "granted $500.00, expires: never.",
  });
  await millwright("credit", "grant", "500", "--to", "t2", "--expires", "2027-01-01");
  expect(seen.map(({ path, body }) => [path, body])).toEqual([
    ["/api/v1/team/t1/credits", { amount_usd: 500, note: "November" }],
    ["/api/v1/team/t2/credits", { amount_usd: 500, expires_at: "2027-01-01" }],
  ]);
});

test.each(["", "../t2"])("credits are not granted to the team %j", async (team) => {
  expect(await millwright("credit", "grant", "500", "--to", team)).toMatchObject({ code: 2 });
  expect(seen).toEqual([]);
});
