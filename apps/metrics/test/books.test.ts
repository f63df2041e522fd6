import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { seededRandom } from "@millwright/testing";
import type { MetricsApp } from "../src/compose.ts";
import { urlKey } from "../src/domain/url-key.ts";
import { finalRuns, play, randomHistory } from "./random-history.ts";
import { modelCall, type FakeRun } from "./run-samples.ts";
import { ADMIN, NOW, startWorld, type World } from "./setup.ts";

let world: World;
let replica: MetricsApp;
beforeAll(async () => {
  world = await startWorld();
  replica = world.replica();
});
afterAll(() => world.stop());

/** In the order in which they take effect; versions of another order price the same. */
const PRICES = [
  { at: Date.parse("2026-11-20T10:03:00Z"), vcpu: 40_000, gb: 5_000, run: 250 },
  { at: Date.parse("2026-11-20T10:20:00Z"), vcpu: 90_001, gb: 9_007, run: 900 },
  { at: Date.parse("2026-11-20T10:30:00Z"), vcpu: 30_003, gb: 0, run: 0 },
];
type Price = (typeof PRICES)[number];
/** Each price, after others from the same time on that it replaces. */
const PRICE_BOOK: readonly (readonly Price[])[] = PRICES.map((price, index) => [
  { ...price, vcpu: 70_000 * index, gb: 7, run: 1_000 },
  { ...price, run: 0 },
  price,
]);
const FREE = { vcpu: 0, gb: 0, run: 0 };
const priceAt = (at: Date) => PRICES.findLast((price) => price.at <= at.getTime()) ?? FREE;

/** Sum of micro-dollars by factory and component, from the snapshots alone. */
function expectedTotals(runs: readonly FakeRun[]): Record<string, number> {
  const totals: Record<string, number> = {};
  for (const run of runs) {
    const add = (component: string, micros: number): void => {
      const key = `${run.costOwner!.factoryUid} ${component}`;
      totals[key] = (totals[key] ?? 0) + micros;
    };
    for (const { costMicros } of run.modelCalls) add("inference", Number(costMicros ?? 0n));
    for (const interval of run.computeIntervals) {
      const { startedAt, endedAt, vcpus, memoryGb } = interval;
      const { vcpu, gb } = priceAt(timestampDate(startedAt!));
      const ms = timestampDate(endedAt!).getTime() - timestampDate(startedAt!).getTime();
      // Shapes are multiples of a half: every product is exact.
      add(
        "compute",
        isUnpriced(interval) ? 0 : Math.floor((2 * ms * (vcpus * vcpu + memoryGb * gb) + 3_600_000) / 7_200_000),
      );
    }
    const charge = priceAt(timestampDate(run.createdAt!)).run;
    if (charge > 0) add("platform", charge);
  }
  return totals;
}

/** How many model calls, or compute intervals, of the snapshots have no price. */
const unpricedCount = (runs: readonly FakeRun[], component: string): number =>
  component === "inference"
    ? runs.flatMap((run) => run.modelCalls).filter(({ costMicros }) => costMicros === undefined).length
    : runs.flatMap((run) => run.computeIntervals).filter(isUnpriced).length;

function isUnpriced({ startedAt, vcpus, memoryGb }: FakeRun["computeIntervals"][number]): boolean {
  const { vcpu, gb } = priceAt(timestampDate(startedAt!));
  return (vcpus === 0 && vcpu > 0) || (memoryGb === 0 && gb > 0);
}

async function addPrice(versions: readonly Price[]): Promise<void> {
  for (const { at, vcpu, gb, run } of versions) {
    const micros = { vcpuHourMicros: BigInt(vcpu), gbHourMicros: BigInt(gb), platformRunMicros: BigInt(run) };
    const asked = { ...micros, effectiveFrom: timestampFromDate(new Date(at)) };
    await world.prices.addComputePrice(asked, call(ADMIN));
    await world.service.work.drain();
  }
}

const totals = async (query: string): Promise<Record<string, number>> =>
  Object.fromEntries(
    (await world.rows<{ key: string; micros: string }>(query)).map(({ key, micros }) => [key, Number(micros)]),
  );

const SEEDS = [11, 12, ...Array.from({ length: 2 }, () => Math.floor(Math.random() * 2 ** 31))];

describe.each(SEEDS)("after a random history (seed %d)", (seed) => {
  let runs: FakeRun[];
  beforeAll(async () => {
    await world.reset();
    const history = randomHistory(seed, {
      factoryUids: [newUid(), newUid(), newUid()],
      steps: 250,
      hasLatePrices: true,
    });
    const random = seededRandom(seed);
    const additions = PRICE_BOOK.map((price) => ({ price, before: random.below(history.length) }));
    for (const [index, step] of history.entries()) {
      for (const { price } of additions.filter(({ before }) => before === index)) await addPrice(price);
      play(world, step);
      if (random.chance(0.2)) await world.settle();
      if (random.chance(0.1)) await Promise.all([world.service.work.drain(), replica.work.drain()]);
    }
    await world.service.work.drain();
    for (let minute = 0; minute < 4; minute += 1) {
      await world.settle();
      world.clock.advance(60_000);
    }
    runs = finalRuns(history);
  });

  test("the ledger, spend per day and spend per tree have the same sums, and those of the snapshots", async () => {
    const sum = (table: string) =>
      totals(
        `SELECT factory_uid || ' ' || component AS key, sum(micros)::text AS micros FROM ${table} GROUP BY factory_uid, component`,
      );
    const ledger = await sum("ledger_entries");
    const nonZero = (all: Record<string, number>) =>
      Object.fromEntries(Object.entries(all).filter(([, micros]) => micros !== 0));
    expect(nonZero(ledger)).toEqual(nonZero(expectedTotals(runs)));
    for (const dimension of ["source", "user", "agent", "model"]) {
      const daily = `(SELECT factory_uid, component, micros
                        FROM cost_group_days
                       CROSS JOIN LATERAL (VALUES ('inference', inference_micros), ('compute', compute_micros), ('platform', platform_micros)) c (component, micros)
                       WHERE dimension = '${dimension}') daily`;
      expect([dimension, nonZero(await sum(daily))]).toEqual([dimension, nonZero(ledger)]);
    }
    expect(nonZero(await sum("tree_costs"))).toEqual(nonZero(ledger));
  });

  test("coverage counts what has no price now", async () => {
    const kinds = { model_call: "inference", compute_interval: "compute" };
    for (const [kind, component] of Object.entries(kinds)) {
      const days = await world.rows<{ unpriced: number }>(
        `SELECT sum(unpriced_${kind}s)::int AS unpriced FROM cost_group_days WHERE dimension = 'model'`,
      );
      expect([component, days[0]!.unpriced]).toEqual([component, unpricedCount(runs, component)]);
    }
  });

  test("the pull requests of a tree carry its whole spend, and with the trees that have none the whole ledger", async () => {
    const components = ["inference", "compute", "platform"];
    for (const component of components) {
      const uneven = await world.rows(
        `SELECT s.root, s.micros, l.micros
           FROM (SELECT root_run_uid AS root, sum(${component}_micros) AS micros FROM pull_request_shares GROUP BY 1) s
           LEFT JOIN (SELECT owner_root_uid AS root, sum(micros) AS micros
                        FROM ledger_entries
                       WHERE component = '${component}'
                       GROUP BY 1) l USING (root)
          WHERE s.micros <> coalesce(l.micros, 0)`,
      );
      expect(uneven).toEqual([]);
      const parts = await totals(
        `SELECT factory_uid AS key, sum(micros)::text AS micros
           FROM (SELECT factory_uid::text, ${component}_micros AS micros FROM pull_request_shares
                  UNION ALL
                 SELECT factory_uid::text, micros FROM ledger_entries l
                  WHERE component = '${component}'
                    AND NOT EXISTS (SELECT FROM produced_pull_requests p WHERE p.root_run_uid = l.owner_root_uid)) parts
          GROUP BY 1`,
      );
      const ledger = await totals(
        `SELECT factory_uid::text AS key, sum(micros)::text AS micros FROM ledger_entries WHERE component = '${component}' GROUP BY 1`,
      );
      for (const [factoryUid, micros] of Object.entries(ledger))
        expect([factoryUid, parts[factoryUid] ?? 0]).toEqual([factoryUid, micros]);
    }
  });

  test("shares of a tree differ by a micro-dollar at most, the first by URL carry more, and pull requests add up their shares", async () => {
    const trees = Map.groupBy(
      await world.rows<{ root: string; key: string; micros: number }>(
        `SELECT root_run_uid AS root, url_key AS key, inference_micros AS micros FROM pull_request_shares ORDER BY root_run_uid, url_key COLLATE "C"`,
      ),
      ({ root }) => root,
    );
    for (const shares of trees.values()) {
      const micros = shares.map((share) => share.micros);
      expect(micros).toEqual(micros.toSorted((a, b) => b - a));
      expect(micros[0]! - micros.at(-1)!).toBeLessThanOrEqual(1);
    }
    const named = runs.flatMap((run) =>
      run.pullRequests.map(({ url }) => ({ root: run.rootRunUid, key: urlKey(url) })),
    );
    const produced = Map.groupBy(named, ({ root }) => root);
    const keysOf = (of: Map<string, { key: string }[]>) =>
      Object.fromEntries([...of].map(([root, keys]) => [root, new Set(keys.map(({ key }) => key))]));
    expect(keysOf(trees)).toEqual(keysOf(produced));
    const different = await world.rows(
      `SELECT f.url_key
         FROM factory_pull_requests f
         LEFT JOIN (SELECT factory_uid, url_key, sum(inference_micros) AS inference, sum(compute_micros) AS compute, sum(platform_micros) AS platform
                      FROM pull_request_shares
                     GROUP BY 1, 2) s USING (factory_uid, url_key)
        WHERE (f.inference_micros, f.compute_micros, f.platform_micros) IS DISTINCT FROM (s.inference, s.compute, s.platform)`,
    );
    expect(different).toEqual([]);
  });

  test("runs per day are the runs", async () => {
    const dimensions =
      "factory_uid, (created_at AT TIME ZONE 'UTC')::date, parent_run_uid IS NULL, agent_type, state, source, model_id, harness";
    const different = await world.rows(
      `(SELECT * FROM run_days WHERE runs <> 0 EXCEPT SELECT ${dimensions}, count(*) FROM run_facts GROUP BY 1, 2, 3, 4, 5, 6, 7, 8)
        UNION ALL
       (SELECT ${dimensions}, count(*) FROM run_facts GROUP BY 1, 2, 3, 4, 5, 6, 7, 8 EXCEPT SELECT * FROM run_days)`,
    );
    expect(different).toEqual([]);
    expect(await world.rows("SELECT count(*) AS runs FROM run_facts")).toEqual([{ runs: runs.length }]);
  });
});

test.each(["UPDATE ledger_entries SET micros = 0", "DELETE FROM ledger_entries"])(
  "the ledger refuses %s",
  async (statement) => {
    await world.reset();
    world.aRun({ factoryUid: world.aFactory(), createdAt: NOW, modelCalls: [modelCall({ costMicros: 5n })] });
    await world.settle();
    await expect(world.rows(statement)).rejects.toThrow("cannot be changed or deleted");
    expect(await world.rows("SELECT micros FROM ledger_entries WHERE component = 'inference'")).toEqual([
      { micros: 5 },
    ]);
  },
);
