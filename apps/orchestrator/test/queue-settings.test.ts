import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { EventHandlers } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { onFactoryQueueSettings, onIdentityQueueSettings } from "../src/leases/events/on-queue-settings.ts";
import { aCaller, aRun, teamOf, testPlatform, type TestPlatform } from "./support/platform.ts";

let platform: TestPlatform;
beforeAll(async () => {
  platform = await testPlatform({ poolSize: 16, limits: { team: 1, factory: 2 } });
  platform.life.start();
});
afterAll(() => platform.close());

/** Applies an event of an upstream service's feed. */
async function applyEvent(
  handlers: EventHandlers,
  type: string,
  entityUid: string,
  entityVersion: number,
  payload: Record<string, unknown>,
): Promise<void> {
  await platform.database.transaction((tx) =>
    handlers[type]!(tx, { type, entityUid, entityVersion, payload } as never),
  );
}
const teamUpdated = (uid: string, version: number, payload: Record<string, unknown>) =>
  applyEvent(onIdentityQueueSettings(platform.deps), "millwright.team.updated.v1", uid, version, payload);
const factoryUpdated = (uid: string, version: number, payload: Record<string, unknown>) =>
  applyEvent(onFactoryQueueSettings(platform.deps), "millwright.factory.updated.v1", uid, version, payload);

test("a changed limit applies to queued runs, and wakes the waiting workers", async () => {
  const caller = aCaller();
  const teamUid = teamOf(caller);
  const worker = await platform.worker({ teamUid });
  await platform.life.createRuns(
    caller,
    Array.from({ length: 3 }, () => aRun(caller)),
  );
  expect(await platform.claim(worker, 9)).toHaveLength(1);
  const waiting = platform.life.worker.lease(worker.session, 9, 20_000, new AbortController().signal);
  await teamUpdated(teamUid, 7, { concurrency_limit: 2, queue_paused: false, queue_weight: 1 });
  expect(await waiting).toHaveLength(1);
  await teamUpdated(teamUid, 6, { concurrency_limit: 9, queue_paused: false, queue_weight: 1 }); // an older version
  await platform.run(caller); // resolved with version 0
  expect(await platform.claim(worker, 9)).toEqual([]);
  await teamUpdated(teamUid, 8, { changed: ["name"] }); // an event from before these settings existed
  // The default again, which is below the number of running executions.
  await teamUpdated(teamUid, 9, { concurrency_limit: 0, queue_paused: false, queue_weight: 1 });
  expect(await platform.claim(worker, 9)).toEqual([]);
  expect(await platform.inUse(teamUid)).toBe(2);
});

test("a factory's limit and pause are applied by its events, also before its first run", async () => {
  const caller = aCaller();
  const [factoryUid, teamUid] = [newUid(), teamOf(caller)];
  await teamUpdated(teamUid, 2, { concurrency_limit: 100, queue_paused: false, queue_weight: 1 });
  await factoryUpdated(factoryUid, 2, { concurrency_limit: 5, queue_paused: true });
  const created = await platform.life.createRuns(
    caller,
    Array.from({ length: 8 }, () => aRun(caller, { factoryUid })),
  );
  const worker = await platform.worker({ teamUid });
  expect(await platform.claim(worker, 9)).toEqual([]);
  expect(await platform.life.getQueueStatus(caller, created[0]!.run.uid)).toMatchObject({
    reason: "paused",
    message: "The factory is paused. Resume it to start new runs.",
  });
  await factoryUpdated(factoryUid, 3, { concurrency_limit: 5, queue_paused: false });
  expect(await platform.claim(worker, 9)).toHaveLength(5);
  expect(await platform.life.getQueueStatus(caller, created[7]!.run.uid)).toMatchObject({
    reason: "factory_cap",
    position: 3,
  });
});

test("a factory is closed without an active run, or stays open with it, however creating and closing race", async () => {
  const caller = aCaller();
  for (let n = 0; n < 20; n++) {
    const factoryUid = newUid();
    const create = () =>
      platform.run(caller, { factoryUid }).then(
        () => "created",
        (error: unknown) => (error as { reason: string }).reason,
      );
    const [created, live] = await Promise.all([create(), platform.life.closeFactory(factoryUid, false)]);
    const story = [created, live, await create(), await platform.life.closeFactory(factoryUid, false)];
    expect([await platform.life.closeFactory(factoryUid, true), await create()]).toEqual([
      live === 0 ? 0 : 2,
      "factory_closed",
    ]);
    expect(story).toEqual(live === 0 ? ["factory_closed", 0, "factory_closed", 0] : ["created", 1, "created", 2]);
  }
});
