import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { rebuildReadModels } from "../src/usecases/rebuild-read-models.ts";
import { play, randomHistory } from "./random-history.ts";
import { storeHostFacts } from "./run-rows.ts";
import { NOW, startWorld, TEAM, type World } from "./setup.ts";

const SEED = 11;

let world: World;
beforeAll(async () => {
  world = await startWorld();
  for (const step of randomHistory(SEED, { factoryUids: [newUid(), newUid()] })) {
    play(world, step);
    await world.settle();
  }
  const merged = { team_uid: TEAM, repo_full_name: "acme/shop", state: "merged", opened_at: NOW, merged_at: NOW };
  await storeHostFacts(world.t.database.sql, [{ ...merged, url_key: "github.com/acme/shop/pull/900" }]);
});
afterAll(() => world.stop());

const rebuild = () => rebuildReadModels(world.t.url, world.clock);

test(`a rebuild from the same facts ends with equal read models (seed ${SEED})`, async () => {
  const rebuilt = await rebuild();
  expect(rebuilt.length).toBeGreaterThan(0);
  expect(rebuilt.flatMap(({ changed }) => changed)).toEqual([]);
});

test("a rebuild repairs every read model and names those that it changed", async () => {
  const tables = [
    "run_days",
    "cost_group_days",
    "tree_costs",
    "repository_merge_days",
    "pull_request_shares",
    "factory_pull_requests",
  ];
  const contents = async () =>
    Promise.all(tables.map((table) => world.rows(`SELECT * FROM ${table} t ORDER BY t::text`)));
  await rebuild();
  const intact = await contents();
  for (const rows of intact) expect(rows.length).toBeGreaterThan(0);
  for (const table of tables) await world.rows(`DELETE FROM ${table} WHERE ctid = (SELECT min(ctid) FROM ${table})`);
  const changed = new Set((await rebuild()).flatMap((each) => each.changed));
  expect([...changed].toSorted()).toEqual(tables.toSorted());
  expect(await contents()).toEqual(intact);
});

test("a rebuild has the facts of all runs read again, which changes nothing", async () => {
  await rebuild();
  const [marked] = await world.rows<{ runs: number }>("SELECT count(*)::int AS runs FROM stale_runs");
  const [stored] = await world.rows<{ runs: number }>("SELECT count(*)::int AS runs FROM run_facts");
  expect(marked!.runs).toBeGreaterThanOrEqual(stored!.runs);
  await world.settle();
  expect((await rebuild()).flatMap(({ changed }) => changed)).toEqual([]);
});
