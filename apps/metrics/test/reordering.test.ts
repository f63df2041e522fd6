import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { seededRandom } from "@millwright/testing";
import { play, randomHistory, type Step } from "./random-history.ts";
import { startWorld, TEAM, type World } from "./setup.ts";

let world: World;
beforeAll(async () => void (world = await startWorld()));
afterAll(() => world.stop());

/** Everything that is made of facts; without the time of recording, and without counts that went back to nothing. */
const TABLES: Readonly<Record<string, string>> = {
  run_facts: "SELECT * FROM run_facts",
  run_days: "SELECT * FROM run_days WHERE runs <> 0",
  ledger_entries: "SELECT to_jsonb(l) - 'recorded_at' FROM ledger_entries l",
  cost_group_days: "SELECT * FROM cost_group_days",
  tree_costs: "SELECT * FROM tree_costs",
  produced_pull_requests: "SELECT * FROM produced_pull_requests",
  pull_request_shares: "SELECT * FROM pull_request_shares",
  factory_pull_requests: "SELECT * FROM factory_pull_requests",
};

async function hashes(): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  for (const [table, query] of Object.entries(TABLES)) {
    const rows = await world.rows<{ row: string }>(`SELECT t::text AS row FROM (${query}) t ORDER BY 1`);
    found[table] = `${rows.length} rows ${createHash("md5")
      .update(rows.map(({ row }) => row).join("\n"))
      .digest("hex")}`;
  }
  return found;
}

async function begin(): Promise<void> {
  await world.reset();
  await world.rows(
    "INSERT INTO compute_prices VALUES (2, 40000, 5000, 250, '2026-11-20T10:03:00Z'), (3, 90001, 9007, 900, '2026-11-20T10:12:00Z')",
  );
}

/** Reads until nothing is due for three minutes: after that only runs in progress are read again. */
async function settle(): Promise<void> {
  for (let minute = 0; minute < 4; minute += 1) {
    await world.settle();
    world.clock.advance(60_000);
  }
}

/** Every event once, in order, and applied at once. */
async function playInOrder(history: readonly Step[]): Promise<void> {
  for (const step of history) {
    play(world, step);
    await world.settle();
  }
  await settle();
}

/**
 * Events late, repeated and in another order; snapshots of up to a minute ago; reads by two replicas whenever it
 * happens.
 */
async function playInDisorder(history: readonly Step[], seed: number): Promise<void> {
  const random = seededRandom(seed);
  const other = world.replica();
  const { orchestrator, clock } = world;
  let played = 0;
  orchestrator.delayed = [];
  orchestrator.answer = (runs) =>
    random.shuffled(
      runs.map((run) => {
        const recent = history
          .slice(0, played)
          .filter((step) => step.run.uid === run.uid && clock.now().getTime() - step.at.getTime() < 60_000);
        return recent.length > 0 && random.chance(0.4) ? random.pick(recent).run : run;
      }),
    );
  for (const step of history) {
    play(world, step);
    played += 1;
    if (random.chance(0.2)) {
      orchestrator.release((delayed) => {
        const delivered = delayed.filter(() => random.chance(0.7));
        return random.shuffled([...delivered, ...delivered.filter(() => random.chance(0.3))]);
      });
      orchestrator.delayed = [];
    }
    if (random.chance(0.3)) await world.settle(random.pick([world.service, other]));
    if (random.chance(0.1)) await Promise.all([world.settle(), world.settle(other)]);
  }
  // What was not delivered so far arrives last, after newer events of the same runs.
  const everything = history.flatMap(({ run, happened, at: occurredAt }) =>
    happened ? [{ type: `millwright.run.${happened}.v1`, entityUid: run.uid, teamUid: TEAM, occurredAt }] : [],
  );
  orchestrator.delayed = undefined;
  orchestrator.feed.push(...random.shuffled(everything));
  orchestrator.answer = (runs) => runs;
  await settle();
  await other.stop();
}

const SEEDS = [1, 2, 3, ...Array.from({ length: 2 }, () => Math.floor(Math.random() * 2 ** 31))];

test.each(SEEDS)(
  "late, repeated and reordered events and snapshots end in the tables of the ordered history (seed %d)",
  async (seed) => {
    const history = randomHistory(seed, { factoryUids: [newUid(), newUid()] });
    await begin();
    await playInOrder(history);
    const expected = await hashes();
    await begin();
    await playInDisorder(history, seed);
    expect(await hashes()).toEqual(expected);
  },
);

test("the comparison notices a missing model call", async () => {
  const history = randomHistory(6, { factoryUids: [newUid()] });
  await begin();
  await playInOrder(history);
  const expected = await hashes();
  const lost = history.findLast(({ run }) => run.modelCalls.length > 0)!.run.modelCalls[0]!.callId;
  for (const { run } of history) run.modelCalls = run.modelCalls.filter(({ callId }) => callId !== lost);
  await begin();
  await playInOrder(history);
  expect((await hashes())["ledger_entries"]).not.toBe(expected["ledger_entries"]);
});
