import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { DomainError } from "@millwright/errors";
import { newUid, uidOf } from "@millwright/ids";
import { rebuildReadModels, type Rebuild } from "../src/usecases/rebuild-read-models.ts";
import { githubExample } from "./code-host-payloads.ts";
import { deliveryWorld } from "./delivery-world.ts";
import { play, randomHistory } from "./random-history.ts";
import { startWorld, type World } from "./setup.ts";

const SEED = 11;
const READ_MODELS = [
  "run_days",
  "repository_merge_days",
  "cost_group_days",
  "tree_costs",
  "pull_request_shares",
  "factory_pull_requests",
];
/** Everything that a replay makes again. */
const REPLAYED = [
  "run_facts",
  "ledger_entries",
  "produced_pull_requests",
  "pull_requests",
  "pull_request_activities",
  ...READ_MODELS,
];

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

/** Rebuilds; whenever the command waits, `service` carries out what is due. */
async function rebuild(service: () => Promise<void> = serve): Promise<Rebuild> {
  await world.service.ready();
  return rebuildReadModels({ clock: world.clock, pause: service, report: () => {} }, world.t.url);
}

async function serve(): Promise<void> {
  await world.rows("UPDATE stream.work_items SET due_at = now() - interval '1 second' WHERE state = 'waiting'");
  await world.settle();
  await world.service.work.drain();
  await world.service.refreshDue();
}

/** Has a pull request that is opened or merged reported. */
function deliver(action: "opened" | "closed", number: number): void {
  const isMerged = action === "closed";
  const payload = githubExample("pull_request", action, {
    "pull_request.html_url": `https://github.com/acme/shop/pull/${number}`,
    "pull_request.number": number,
    "pull_request.merged": isMerged,
    ...(isMerged && { "pull_request.merged_at": "2026-11-20T12:00:00Z" }),
    "repository.full_name": "acme/shop",
  });
  deliveryWorld(world).github("pull_request", payload);
}

const changedOf = ({ factories }: Rebuild): string[] => [...new Set(factories.flatMap(({ changed }) => changed))];
const hashesOf = ({ factories }: Rebuild, when: "before" | "after") =>
  factories.flatMap(({ endpoints }) => endpoints.map((hashes) => hashes[when]));
/** Excludes counts that went back to zero. */
const hasCount = (row: string): string => `coalesce(${row} ->> 'runs', ${row} ->> 'merged', '1') <> '0'`;
/** Returns the rows of tables, without counts that went back to zero. */
const contents = (tables: readonly string[]) =>
  Promise.all(
    tables.map((table) =>
      world.rows(
        `SELECT row FROM (SELECT to_jsonb(t) - 'recorded_at' AS row FROM ${table} t) rows
          WHERE ${hasCount("row")}
          ORDER BY row::text`,
      ),
    ),
  );

/** Plays a history of two factories with deliveries of pull requests, some of them unknown to any run. */
beforeEach(async () => {
  await world.reset();
  await world.rows("TRUNCATE rebuilds");
  const factoryUids = [uidOf("factory 1"), uidOf("factory 2")];
  for (const step of randomHistory(SEED, { factoryUids, steps: 60 })) {
    play(world, step);
    await world.settle();
  }
  for (const number of [7, 8, 9]) {
    deliver("opened", number);
    deliver("closed", number);
  }
  await deliveryWorld(world).settle();
});

test(`a rebuild from the same facts ends with equal responses of every endpoint (seed ${SEED})`, async () => {
  const rebuilt = await rebuild();
  expect(rebuilt.factories).toHaveLength(2);
  expect(changedOf(rebuilt)).toEqual([]);
  for (const { endpoints } of rebuilt.factories) {
    expect(endpoints.map(({ endpoint }) => endpoint)).toEqual([
      "metrics",
      "run-breakdown",
      "costs/per-pr",
      "costs/breakdown",
      "costs/top",
      "costs/by-size",
      "pull-requests",
    ]);
  }
  expect(hashesOf(rebuilt, "after")).toEqual(hashesOf(rebuilt, "before"));
  const [stored] = await world.rows<{ runs: number }>("SELECT count(*) AS runs FROM run_facts");
  expect(rebuilt).toMatchObject({
    runs: stored!.runs,
    deliveries: 6,
    failures: 0,
    retainedPullRequests: 0,
    unreadRuns: 0,
  });
});

test("a rebuild repairs every read model and names those that it changed", async () => {
  const intact = await contents(READ_MODELS);
  for (const rows of intact) expect(rows.length).toBeGreaterThan(0);
  const rebuilt = await rebuild(async () => {
    await serve();
    for (const table of READ_MODELS)
      await world.rows(
        `DELETE FROM ${table} WHERE ctid = (SELECT min(ctid) FROM ${table} t WHERE ${hasCount("to_jsonb(t)")})`,
      );
  });
  expect(changedOf(rebuilt).toSorted()).toEqual(READ_MODELS.toSorted());
  expect(await contents(READ_MODELS)).toEqual(intact);
});

test("a rebuild of an empty database makes all facts again from runs and stored deliveries", async () => {
  const [first, intact] = [await rebuild(), await contents(REPLAYED)];
  await world.rows(`TRUNCATE ${REPLAYED.join(", ")}`);
  const rebuilt = await rebuild();
  expect(await contents(REPLAYED)).toEqual(intact);
  expect(hashesOf(rebuilt, "after")).toEqual(hashesOf(first, "after"));
  expect(new Set(hashesOf(rebuilt, "before"))).toEqual(new Set([undefined]));
});

test("facts of deliveries that are no longer stored are retained and counted", async () => {
  await rebuild();
  const intact = await contents(REPLAYED);
  const first = [...world.webhookIngress.deliveries.keys()].slice(0, 2);
  for (const uid of first) world.webhookIngress.deliveries.delete(uid);
  expect(await rebuild()).toMatchObject({ deliveries: 4, retainedPullRequests: 1 });
  expect(await contents(REPLAYED)).toEqual(intact);
});

test("a rebuild without facts returns no factory", async () => {
  await world.reset();
  expect(await rebuild()).toMatchObject({ factories: [], runs: 0, deliveries: 0 });
});

test("a rebuild is refused while the service is not connected", async () => {
  const alone = await startWorld();
  try {
    const deps = { clock: alone.clock, pause: async () => {}, report: () => {} };
    await expect(rebuildReadModels(deps, alone.t.url)).rejects.toThrow(
      "The metrics service is not connected to this database",
    );
    expect(await alone.rows("SELECT FROM rebuilds")).toEqual([]);
  } finally {
    await alone.stop();
  }
});

describe("a replay", () => {
  const unavailable = () => {
    throw new DomainError({ kind: "unavailable", reason: "upstream_unavailable", message: "Not now." });
  };
  /** Adds deliveries until they are several pages. */
  const manyDeliveries = async (): Promise<void> => {
    for (let number = 100; number < 220; number += 1) deliver("opened", number);
    await deliveryWorld(world).settle();
  };

  test("resumes at its page after the command and the service were killed", async () => {
    await manyDeliveries();
    let reads = 0;
    world.webhookIngress.beforeGet = () => ((reads += 1) > 60 ? unavailable() : undefined);
    const killed = rebuild(async () => {
      await serve();
      if (reads > 60) throw new Error("killed");
    });
    await expect(killed).rejects.toThrow("killed");
    const [interrupted] = await world.rows("SELECT uid, phase, deliveries FROM rebuilds");
    expect(interrupted).toMatchObject({ phase: "deliveries", deliveries: 50 });
    const again: string[] = [];
    world.webhookIngress.beforeGet = (uid) => void again.push(uid);
    const rebuilt = await rebuild();
    expect(rebuilt.deliveries).toBe(126);
    expect(again).toEqual([...world.webhookIngress.deliveries.keys()].slice(50));
    expect(await world.rows("SELECT uid, phase FROM rebuilds")).toEqual([{ uid: interrupted!["uid"], phase: "done" }]);
  });

  test("is carried out once by two replicas and two commands", async () => {
    await manyDeliveries();
    const other = world.replica();
    const both = async (): Promise<void> => {
      await Promise.all([serve(), other.work.drain(), other.refreshDue()]);
    };
    const [first, second] = await Promise.all([rebuild(both), rebuild(both)]);
    expect([first.deliveries, second.deliveries]).toEqual([126, 126]);
    expect([...changedOf(first), ...changedOf(second)]).toEqual([]);
    expect(await world.rows("SELECT FROM rebuilds")).toHaveLength(1);
  });

  test("loses no fact that is ingested concurrently", async () => {
    let isFirst = true;
    await rebuild(async () => {
      if (isFirst) deliver("closed", 10);
      if (isFirst) world.aRun({ uid: newUid(), factoryUid: uidOf("factory 1") });
      isFirst = false;
      await serve();
    });
    const again = await rebuild();
    expect(changedOf(again)).toEqual([]);
    expect(hashesOf(again, "after")).toEqual(hashesOf(again, "before"));
    expect(await world.rows("SELECT state FROM pull_requests WHERE pr_number = 10")).toEqual([{ state: "merged" }]);
  });

  test("passes over a delivery that cannot be recorded and reports it", async () => {
    const [bad] = world.webhookIngress.deliveries.keys();
    world.webhookIngress.beforeGet = (uid) => {
      if (uid === bad) throw new DomainError({ kind: "invalid_argument", reason: "bad", message: "Broken payload." });
    };
    const rebuilt = await rebuild();
    expect(rebuilt).toMatchObject({ deliveries: 5, failures: 1 });
    expect(rebuilt.lastError).toBe(`Delivery ${bad}: Broken payload.`);
  });

  test("stops with the reason after its last try, and is resumed by the next command", async () => {
    world.webhookIngress.beforeGet = unavailable;
    const failing = async (): Promise<void> => {
      await world.rows("UPDATE stream.work_items SET attempts = 100 WHERE kind = 'replay_facts' AND state = 'waiting'");
      await serve();
    };
    await expect(rebuild(failing)).rejects.toThrow("The service could not replay");
    world.webhookIngress.beforeGet = () => {};
    expect(await rebuild()).toMatchObject({ deliveries: 6, failures: 0 });
    expect(await world.rows("SELECT FROM rebuilds")).toHaveLength(1);
  });
});
