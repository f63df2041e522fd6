import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import type { Caller } from "@millwright/caller";
import { call, optionalTimestamp } from "@millwright/rpc";
import { repriceRuns } from "../src/usecases/reprice-runs.ts";
import { computeInterval, producedPullRequest } from "./run-samples.ts";
import { ADMIN, NOW, OTHER_TEAM, OWNER, RUN_VIEWER, startWorld, STRANGER, TEAM, type World } from "./setup.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());
beforeEach(() => world.reset());

const HOUR_MS = 3_600_000;
const PRICE = { vcpuHourMicros: 40_000n, gbHourMicros: 0n, platformRunMicros: 250n };
const hoursAgo = (hours: number): Date => new Date(NOW.getTime() - hours * HOUR_MS);
type Asked = Partial<typeof PRICE> & { from?: Date; idempotencyKey?: string; caller?: Caller };
const add = async ({ from, caller = ADMIN, ...asked }: Asked = {}) =>
  (await world.prices.addComputePrice({ ...PRICE, ...asked, effectiveFrom: optionalTimestamp(from) }, call(caller)))
    .price!;
const list = (request: { pageSize?: number; pageToken?: string } = {}, caller = OWNER) =>
  world.prices.listComputePrices(request, call(caller));
const versions = async () => (await list()).prices.map(({ version }) => version);

/** A run of an hour on two vCPUs that began so many hours ago. */
function runOfAnHour(factoryUid: string, hours: number, init: object = {}) {
  const startedAt = hoursAgo(hours);
  const interval = computeInterval({ startedAt, endedAt: hoursAgo(hours - 1), vcpus: 2, memoryGb: 4 });
  return world.aRun({ factoryUid, createdAt: startedAt, computeIntervals: [interval], ...init });
}
const spend = async (component: string) =>
  (
    await world.rows<{ micros: number }>(
      "SELECT coalesce(sum(micros), 0)::int AS micros FROM ledger_entries WHERE component = $1",
      [component],
    )
  )[0]!.micros;

test("lists the versions newest first, in pages", async () => {
  await add({ from: new Date(NOW.getTime() + HOUR_MS) });
  await add();
  expect(await versions()).toEqual([3, 2, 1]);
  const first = await list({ pageSize: 2 }, STRANGER);
  expect(first.prices.map(({ version }) => version)).toEqual([3, 2]);
  const second = await list({ pageSize: 2, pageToken: first.nextPageToken });
  expect([second.prices.map(({ version }) => version), second.nextPageToken]).toEqual([[1], ""]);
  expect(second.prices[0]).toMatchObject({ vcpuHourMicros: 0n, repricing: { runCount: 0n, correctionCount: 0n } });
  expect([first.prices[0]!.createdBy, second.prices[0]!.createdBy]).toMatchObject([
    { type: "user", uid: ADMIN.principal.uid },
    undefined,
  ]);
  expect(timestampDate(first.prices[0]!.effectiveFrom!)).toEqual(NOW);
  await expect(list({ pageSize: 101 })).rejects.toThrow("limit must be between 1 and 100 (got 101).");
  await expect(list({ pageToken: "x" })).rejects.toMatchObject({ reason: "invalid_cursor" });
});

const run = { runUid: "r", rootRunUid: "r", executionId: "1", attempt: 1 } as unknown as NonNullable<Caller["run"]>;
test.each([
  ["an owner of a team", OWNER],
  ["a run of an administrator", { ...ADMIN, run }],
])("refuses a version of %s", async (_, caller) => {
  await expect(add({ caller })).rejects.toThrow(
    "Adding a version to the price book requires platform administrator rights.",
  );
  expect(await versions()).toEqual([1]);
});

test.each<[string, Asked]>([
  ["vcpu_hour_usd must be between 0 and 1000000 (got -0.000001).", { vcpuHourMicros: -1n }],
  ["gb_hour_usd must be between 0 and 1000000 (got 1000000.000001).", { gbHourMicros: 1_000_000_000_001n }],
  ["platform_run_usd must be between 0 and 1000000 (got -1).", { platformRunMicros: -1_000_000n }],
])("refuses a price: %s", async (message, asked) => {
  await expect(add(asked)).rejects.toThrow(message);
  expect(await versions()).toEqual([1]);
});

test("adds one version for repeated requests, and refuses another price under the same key", async () => {
  const first = await add({ idempotencyKey: "k" });
  world.clock.advance(60_000);
  expect(await add({ idempotencyKey: "k" })).toEqual(first);
  await expect(add({ idempotencyKey: "k", gbHourMicros: 1n })).rejects.toMatchObject({
    reason: "idempotency_mismatch",
  });
  expect(await versions()).toEqual([2, 1]);
  expect(await world.rows("SELECT key FROM stream.work_items WHERE kind = 'reprice-runs'")).toEqual([{ key: "2" }]);
});

test("returns a version to a repeated request as it was added, after its re-pricing", async () => {
  runOfAnHour(world.aFactory(), 3);
  await world.settle();
  const request = { from: hoursAgo(4), idempotencyKey: "k" };
  const first = await add(request);
  expect(first.repricing).not.toHaveProperty("completedAt");
  await world.service.work.drain();
  expect((await list()).prices[0]!.repricing).toMatchObject({ completedAt: timestampFromDate(NOW), runCount: 1n });
  expect(await add(request)).toEqual(first);
  const later = await add({ from: new Date(NOW.getTime() + HOUR_MS) });
  expect(later).toEqual((await list()).prices[0]);
});

test("refuses to change a version", async () => {
  await expect(world.rows("UPDATE compute_prices SET gb_hour_micros = 1")).rejects.toThrow("cannot be changed");
});

test("corrects what was charged since the version took effect, and reports the sum", async () => {
  const factoryUid = world.aFactory();
  const [before, after] = [runOfAnHour(factoryUid, 5), runOfAnHour(factoryUid, 3)];
  await world.settle();
  expect(await spend("compute")).toBe(0);
  await add({ from: hoursAgo(4) });
  expect((await list()).prices[0]!.repricing).not.toHaveProperty("completedAt");
  await world.service.work.drain();
  const entries = await world.rows(
    `SELECT c.run_uid, c.component, c.kind, c.micros, c.price_version, c.occurred_at, o.kind AS corrects
       FROM ledger_entries c LEFT JOIN ledger_entries o ON o.source_key = c.corrects
      WHERE c.price_version = 2 ORDER BY c.component`,
  );
  const shared = { run_uid: after.uid, price_version: 2, occurred_at: hoursAgo(3) };
  expect(entries).toEqual([
    { ...shared, component: "compute", kind: "adjustment", micros: 80_000, corrects: "compute_interval" },
    { ...shared, component: "platform", kind: "platform_charge", micros: 250, corrects: null },
  ]);
  expect(await world.rows("SELECT DISTINCT root_run_uid FROM tree_costs WHERE micros <> 0")).toEqual([
    { root_run_uid: after.uid },
  ]);
  expect(before.uid).not.toBe(after.uid);
  expect((await list()).prices[0]!.repricing).toMatchObject({
    completedAt: timestampFromDate(NOW),
    runCount: 1n,
    correctionCount: 1n,
    correctedMicros: 80_000n,
  });
});

test("corrects corrections, down to nothing, and divides the spend of pull requests again", async () => {
  const factoryUid = world.aFactory();
  runOfAnHour(factoryUid, 3, { pullRequests: [producedPullRequest()] });
  await world.settle();
  const share = () =>
    world.rows("SELECT compute_micros::int AS compute, platform_micros::int AS platform FROM factory_pull_requests");
  for (const [vcpuHourMicros, platformRunMicros, compute, platform] of [
    [10n, 5n, 20, 5],
    [7n, 6n, 14, 6],
    [0n, 0n, 0, 0],
    [1n, 0n, 2, 0],
  ] as const) {
    await add({ vcpuHourMicros, platformRunMicros, from: hoursAgo(4) });
    await world.service.work.drain();
    expect([await spend("compute"), await spend("platform"), await share()]).toEqual([
      compute,
      platform,
      [{ compute, platform }],
    ]);
  }
  await world.settle();
  expect(await world.rows("SELECT DISTINCT kind FROM ledger_entries ORDER BY kind")).toEqual([
    { kind: "adjustment" },
    { kind: "compute_interval" },
    { kind: "platform_charge" },
  ]);
});

test("an interval of unknown shape loses its price, and is in no sum then", async () => {
  const factoryUid = world.aFactory();
  const interval = computeInterval({ startedAt: hoursAgo(3), endedAt: hoursAgo(2), vcpus: 2, memoryGb: 0 });
  world.aRun({ factoryUid, createdAt: hoursAgo(3), computeIntervals: [interval] });
  await world.settle();
  const coverage = async () => {
    const range = { factoryUid, startDate: timestampFromDate(hoursAgo(4)) };
    const found = await world.metrics.getCostBreakdown({ range, groupBy: "source" }, call(OWNER));
    return [found.coverage!.pricedComputeIntervals, found.total!.computeMicros];
  };
  await add({ from: hoursAgo(4) });
  await world.service.work.drain();
  expect(await coverage()).toEqual([1n, 80_000n]);
  await add({ from: hoursAgo(4), gbHourMicros: 1n });
  await world.service.work.drain();
  expect(await coverage()).toEqual([0n, 0n]);
  await add({ from: hoursAgo(4) });
  await world.service.work.drain();
  expect(await coverage()).toEqual([1n, 80_000n]);
});

test("continues after an interruption, and two replicas correct nothing twice", async () => {
  const factories = [world.aFactory(), world.aFactory()];
  for (let n = 0; n < 450; n++) runOfAnHour(factories[n % 2]!, 3);
  await world.settle();
  await add({ from: hoursAgo(4) });
  const deps = { database: world.t.database, clock: world.clock };
  const stopped = new AbortController();
  const interrupted = {
    ...deps,
    database: Object.assign(Object.create(world.t.database) as typeof world.t.database, {
      transaction: (work: never) => (stopped.abort(), world.t.database.transaction(work)),
    }),
  };
  await expect(repriceRuns(interrupted, 2, stopped.signal)).rejects.toThrow("it continues later");
  expect(await spend("compute")).toBe(200 * 80_000);
  const { signal } = new AbortController();
  await Promise.all([repriceRuns(deps, 2, signal), repriceRuns(deps, 2, signal)]);
  await world.service.work.drain();
  expect([await spend("compute"), await spend("platform")]).toEqual([450 * 80_000, 450 * 250]);
  expect((await list()).prices[0]!.repricing).toMatchObject({ runCount: 450n, correctionCount: 450n });
});

const grant = (asked: { micros?: bigint; note?: string; expiresAt?: Date; idempotencyKey?: string }, caller = ADMIN) =>
  world.prices.grantCredits(
    {
      teamUid: TEAM,
      micros: asked.micros ?? 1_000_000n,
      note: asked.note ?? "",
      idempotencyKey: asked.idempotencyKey ?? "",
      expiresAt: optionalTimestamp(asked.expiresAt),
    },
    call(caller),
  );
const grants = async (caller = OWNER) =>
  (await world.prices.listCreditGrants({ teamUid: TEAM }, call(caller))).grants.map(({ note }) => note);
const balance = (caller = OWNER) => world.prices.getCreditBalance({ teamUid: TEAM }, call(caller));

test("credits are granted, listed newest first in pages, and used by what the team's factories spend", async () => {
  await add({ from: hoursAgo(24 * 30), platformRunMicros: 0n });
  for (const hours of [1, 2]) runOfAnHour(world.aFactory(), hours);
  world.aRun({
    teamUid: OTHER_TEAM,
    factoryUid: world.aFactory({ teamUid: OTHER_TEAM }),
    createdAt: NOW,
    computeIntervals: [computeInterval({ startedAt: hoursAgo(2), endedAt: NOW, vcpus: 64, memoryGb: 1 })],
  });
  await world.settle();
  expect(await balance()).toMatchObject({ grantedMicros: 0n, spentMicros: 0n, overdrawnMicros: 0n });
  await grant({ note: "first", micros: 100_000n, expiresAt: new Date(NOW.getTime() + HOUR_MS) });
  world.clock.advance(1);
  await grant({ note: "second", micros: 100_000n });
  expect(await balance(RUN_VIEWER)).toMatchObject({
    grantedMicros: 200_000n,
    spentMicros: 160_000n,
    expiredMicros: 0n,
    remainingMicros: 40_000n,
    overdrawnMicros: 0n,
  });
  expect(await grants(RUN_VIEWER)).toEqual(["second", "first"]);
  const page = await world.prices.listCreditGrants({ teamUid: TEAM, pageSize: 1 }, call(OWNER));
  const next = { teamUid: TEAM, pageToken: page.nextPageToken };
  const rest = await world.prices.listCreditGrants(next, call(OWNER));
  expect([...page.grants, ...rest.grants].map(({ note }) => note)).toEqual(["second", "first"]);
});

test("credits are granted once per key, and by platform administrators only", async () => {
  const first = await grant({ note: "n", idempotencyKey: "k" });
  expect(await grant({ note: "n", idempotencyKey: "k" })).toEqual(first);
  await expect(grant({ note: "other", idempotencyKey: "k" })).rejects.toMatchObject({ reason: "idempotency_mismatch" });
  await expect(grant({}, OWNER)).rejects.toThrow("Granting credits requires platform administrator rights.");
  for (const read of [grants, balance]) await expect(read(STRANGER)).rejects.toThrow("team");
  expect(await grants()).toEqual(["n"]);
  await expect(world.rows("DELETE FROM credit_grants")).rejects.toThrow("cannot be changed or deleted");
});

test("a repeated grant is returned after it has expired", async () => {
  const request = { note: "n", expiresAt: new Date(NOW.getTime() + HOUR_MS), idempotencyKey: "k" };
  const first = await grant(request);
  world.clock.advance(HOUR_MS);
  expect(await grant(request)).toEqual(first);
  expect(await grants()).toEqual(["n"]);
});

test.each<[string, Parameters<typeof grant>[0]]>([
  ["amount_usd must be between 0.000001 and 1000000000 (got 0).", { micros: 0n }],
  ["note must have at most 500 characters (got 501).", { note: "n".repeat(501) }],
  ["expires_at must be in the future (got 2026-11-20T10:00:00.000Z).", { expiresAt: NOW }],
])("refuses credits: %s", async (message, asked) => {
  await expect(grant(asked)).rejects.toThrow(message);
  expect(await grants()).toEqual([]);
});
