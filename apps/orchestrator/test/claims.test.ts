import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { newUid } from "@millwright/ids";
import { endSome, queueBacklog, setCaps } from "./support/backlog.ts";
import { aCaller, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";
import { SCALE, SIMULATION_TIMEOUT_MS } from "./simulation/script.ts";

const FLOOD = 20_000 * SCALE;
const CLAIMERS = 6;
const flood = aCaller();
const agents = Array.from({ length: 8 }, () => newUid());
const factories = [newUid(), newUid()];

/** A team has a large backlog of several agents and two factories, all of them capped. */
let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ poolSize: CLAIMERS + 4 });
  const { database } = platform;
  await setCaps(database, [
    ["team", teamOf(flood), 300],
    ...agents.map((uid, n) => ["agent", uid, 40 + 10 * n] as const),
    ...factories.map((uid) => ["factory", uid, 170] as const),
  ]);
  for (const [n, agentUid] of agents.entries())
    await queueBacklog(database, {
      teamUid: teamOf(flood),
      agentUid,
      factoryUid: factories[n % 2]!,
      count: FLOOD / agents.length,
    });
  await database.sql.query("ALTER TABLE capacity ADD CONSTRAINT never_exceeded CHECK (in_use <= in_use_max)");
}, SIMULATION_TIMEOUT_MS);
afterAll(() => platform.close());

const leasedExecutions = async (): Promise<number[]> =>
  (
    await platform.database.sql.query<{ id: number }>("SELECT execution_id AS id FROM leases ORDER BY execution_id")
  ).rows.map(({ id }) => id);

test(`one team floods the queue with ${FLOOD} runs: another team's single run is offered within two rounds of dispatch`, async () => {
  const workers = await Promise.all(Array.from({ length: 4 }, () => platform.worker({ slots: 4 })));
  for (const worker of workers) expect(await platform.claim(worker, 4)).toHaveLength(4);
  const otherCaller = aCaller();
  const run = await platform.run(otherCaller);
  let rounds = 0;
  for (let isOffered = false; !isOffered; rounds++) {
    for (const worker of workers) {
      const [oldest] = await leasedExecutions(); // one execution ends, and its worker claims again
      await endSome(platform.database, [oldest!]);
      await platform.claim(worker, 1);
    }
    isOffered = (await platform.getRun(otherCaller, run.uid)).state === "PENDING";
  }
  expect(rounds).toBeLessThanOrEqual(2);
  await endSome(platform.database, await leasedExecutions());
});

test(
  `in ${FLOOD} claims by ${CLAIMERS} concurrent workers no limit of a team, an agent or a factory is exceeded`,
  async () => {
    const { database } = platform;
    let claimed = 0;
    let isMet = false;
    const claimer = async (): Promise<void> => {
      const worker = await platform.worker({ slots: 200 });
      for (let n = 1, misses = 0; misses < 5; n++) {
        const offers = await platform.claim(worker, 1 + ((n * 37) % 200));
        claimed += offers.length;
        misses = offers.length === 0 ? misses + 1 : 0;
        isMet ||= offers.length > 0 && offers.length < 1 + ((n * 37) % 200);
        await endSome(
          database,
          offers.map(({ executionId }) => executionId),
        );
      }
    };
    await Promise.all(Array.from({ length: CLAIMERS }, claimer));
    expect({ claimed: claimed >= FLOOD - 100, isMet }).toEqual({ claimed: true, isMet: true });
    const { rows } = await database.sql.query("SELECT scope, in_use FROM capacity WHERE in_use <> 0");
    expect(rows).toEqual([]);
  },
  SIMULATION_TIMEOUT_MS,
);
