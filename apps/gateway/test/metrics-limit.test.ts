import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { pruneMetricsRequests } from "../src/store/metrics-request-store.ts";
import { serveApi, type Api } from "./support/api.ts";
import { APP_KEY, openGateway, type TestGateway } from "./support/gateway.ts";

let platform: TestGateway;
let replicas: Api[];
let close: () => Promise<void>;
beforeAll(async () => {
  platform = await openGateway();
  const second = await platform.compose();
  const api = await serveApi({ listener: second.requestListener, document: second.openApi }, APP_KEY);
  replicas = [platform.api, api];
  close = async () => {
    await api.close();
    await second.stop();
    await platform.close();
  };
});
afterAll(() => close());

const costsOf = (factory: string) => `/api/v1/factory/${factory}/costs/per-pr`;
const pullsOf = (factory: string) => `/api/v1/factory/${factory}/pull-requests?limit=1`;
const get = (path: string, replica = 0, request = {}) => replicas[replica]!.call("GET", path, request);
/** Sends requests concurrently, alternating between the replicas. Returns the number of responses by status. */
async function send(count: number, path: string): Promise<Record<number, number>> {
  const answers = await Promise.all(Array.from({ length: count }, (_each, n) => get(path, n % 2)));
  return answers.reduce<Record<number, number>>(
    (counts, { status }) => ({ ...counts, [status]: (counts[status] ?? 0) + 1 }),
    {},
  );
}

test("allows 60 requests per minute per key and factory, over both replicas and all endpoints", async () => {
  const factory = newUid();
  expect(await send(70, costsOf(factory))).toEqual({ 200: 60, 429: 10 });
  const { status, headers, body } = await get(pullsOf(factory), 1);
  expect([status, headers.get("retry-after"), headers.get("x-should-retry"), headers.get("content-type")]).toEqual([
    429,
    "60",
    "true",
    "application/problem+json",
  ]);
  expect(body).toMatchObject({ status: 429, reason: "rate_limited", error_code: "rate_limited", retryable: true });
  expect((await get(costsOf(newUid()))).status).toBe(200);
});

test("returns the time until the oldest request leaves the window as Retry-After", async () => {
  const factory = newUid();
  await get(costsOf(factory));
  platform.clock.advance(20_500);
  await send(59, costsOf(factory));
  expect((await get(costsOf(factory))).headers.get("retry-after")).toBe("40");
  platform.clock.advance(39_000);
  expect((await get(costsOf(factory))).headers.get("retry-after")).toBe("1");
  platform.clock.advance(500);
  expect([(await get(costsOf(factory))).status, (await get(costsOf(factory), 1)).status]).toEqual([200, 429]);
});

test("counts each key separately, whatever the case of the scheme", async () => {
  const factory = newUid();
  await send(60, costsOf(factory));
  const { key } = await platform.newTeam("other");
  expect((await get(costsOf(factory), 0, { key })).status).toBe(200);
  expect(
    (await get(costsOf(factory), 0, { key: null, headers: { authorization: `bearer  ${APP_KEY} ` } })).status,
  ).toBe(429);
});

test("does not count requests with invalid parameters", async () => {
  const factory = newUid();
  expect(await send(61, `${costsOf(factory)}?group_by_period=year`)).toEqual({ 400: 61 });
  expect((await get(costsOf(factory))).status).toBe(200);
});

test("deletes counts after their minute", async () => {
  await get(costsOf(newUid()));
  platform.clock.advance(60_000);
  await pruneMetricsRequests(platform.database.sql, platform.clock.now());
  expect((await platform.database.sql.query("SELECT 1 FROM metrics_requests")).rows).toEqual([]);
});
