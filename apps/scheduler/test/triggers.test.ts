import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import type { JsonObject } from "@bufbuild/protobuf";
import { newUid } from "@millwright/ids";
import { eventually } from "@millwright/testing";
import { NOW, startWorld, TEAM, type World } from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld()));
afterAll(() => w.stop());
beforeEach(() => w.reset());

const FACTORY = newUid();

/** Publishes and handles an event of an automation; `schedules` are all of its schedules. */
async function publishAutomation(
  automationUid: string,
  schedules: JsonObject[],
  options: { past?: "created" | "updated"; enabled?: boolean; changedAt?: string } = {},
): Promise<void> {
  const { past = "created", enabled = true, changedAt = NOW } = options;
  w.factoriesFeed.push({
    type: `millwright.automation.${past}.v1`,
    entityUid: automationUid,
    teamUid: TEAM,
    occurredAt: new Date(changedAt),
    payload: { factory_uid: FACTORY, enabled, schedules },
  });
  await drainConsumers();
}
async function publishDeletion(entity: "automation" | "factory", entityUid: string): Promise<void> {
  w.factoriesFeed.push({ type: `millwright.${entity}.deleted.v1`, entityUid, teamUid: TEAM, payload: {} });
  await drainConsumers();
}
async function drainConsumers(): Promise<void> {
  for (const consumer of w.service.consumers) await consumer.drain();
}
/** Fires everything that is due at this time. */
async function at(time: string): Promise<void> {
  await w.setTime(`2026-11-${time}:00Z`);
  while ((await w.service.fireTriggers()) > 0);
}
type SlotEvent = {
  type: string;
  payload: { automation_uid: string; slot_at: string; missed_count: number; name?: string };
};
const slotEvents = () => w.rows<SlotEvent>("SELECT type, payload FROM stream.event_pending ORDER BY seq");
/** "20T10:01 fired", "20T10:05 fired after 3", with the name of the schedule. */
const slots = async (): Promise<string[]> =>
  (await slotEvents()).map(({ type, payload: { slot_at: slotAt, missed_count: missed, name } }) =>
    [slotAt.slice(8, 16), type.split(".")[2], ...(missed ? [`after ${missed}`] : []), ...(name ? [name] : [])].join(
      " ",
    ),
  );

test("publishes each slot of an automation once", async () => {
  const automation = newUid();
  await publishAutomation(automation, [{ cron: "@hourly", name: "hours" }]);
  await at("20T10:59");
  expect(await slotEvents()).toEqual([]);
  await at("20T11:00");
  await at("20T11:00");
  const [{ payload } = {}, ...others] = await w.rows<{ payload: JsonObject }>(
    "SELECT type, entity, team_uid, actor_type, actor_uid, payload FROM stream.event_pending",
  );
  expect(others).toEqual([]);
  expect(payload).toEqual({
    factory_uid: FACTORY,
    automation_uid: automation,
    name: "hours",
    cron: "@hourly",
    slot_at: "2026-11-20T11:00:00.000Z",
    missed_count: 0,
  });
  expect(
    await w.rows("SELECT type, entity, team_uid, actor_type, actor_uid, entity_version FROM stream.event_pending"),
  ).toEqual([
    {
      type: "millwright.schedule_trigger.fired.v1",
      entity: "schedule_trigger",
      team_uid: TEAM,
      actor_type: "service",
      actor_uid: "scheduler",
      entity_version: 1,
    },
  ]);
});

test.each([
  ["*/20 * * * *", "20T10:20"],
  ["@hourly", "20T11:00"],
  ["@daily", "21T00:00"],
  ["@weekly", "22T00:00"],
  ["@every 40m", "20T10:40"],
  ["30 9 21 * 1", "21T09:30"],
])("%s follows UTC and first comes due at %s", async (cron, first) => {
  await publishAutomation(newUid(), [{ cron }]);
  const [row] = await w.rows<{ next_slot_at: Date }>("SELECT next_slot_at FROM trigger_schedules");
  expect(row!.next_slot_at.toISOString()).toBe(`2026-11-${first}:00.000Z`);
});

test("after an outage the newest slot fires, and older ones are skipped and counted", async () => {
  await publishAutomation(newUid(), [{ cron: "@hourly" }]);
  await at("20T15:30");
  await at("20T16:00");
  expect(await slots()).toEqual(["20T15:00 fired after 4", "20T16:00 fired"]);
});

test("a slot that is more than a day late is missed", async () => {
  await publishAutomation(newUid(), [{ cron: "@weekly" }]);
  await at("24T10:00");
  await at("29T00:00");
  expect(await slots()).toEqual(["22T00:00 missed", "29T00:00 fired"]);
});

test("concurrent replicas fire a slot once", async () => {
  for (let n = 0; n < 20; n += 1) await publishAutomation(newUid(), [{ cron: "* * * * *" }]);
  const other = w.replica();
  await w.setTime("2026-11-20T10:01:00Z");
  await Promise.all(Array.from({ length: 6 }, (_, index) => (index % 2 ? other : w.service).fireTriggers()));
  await at("20T10:01");
  expect(await slots()).toEqual(Array.from({ length: 20 }, () => "20T10:01 fired"));
});

describe("when an automation changes", () => {
  const changed = (automation: string, schedules: JsonObject[], time: string, enabled = true) =>
    publishAutomation(automation, schedules, { past: "updated", enabled, changedAt: `2026-11-${time}Z` });

  test("an unchanged schedule retains its slots, a new one starts, and a removed one ends", async () => {
    const automation = newUid();
    await publishAutomation(automation, [
      { cron: "@hourly", name: "a" },
      { cron: "30 * * * *", name: "b" },
    ]);
    await changed(
      automation,
      [
        { cron: "@hourly", name: "a" },
        { cron: "45 * * * *", name: "c" },
      ],
      "20T10:01:00",
    );
    await at("20T10:30");
    await at("20T10:45");
    await at("20T11:00");
    expect(await slots()).toEqual(["20T10:45 fired c", "20T11:00 fired a"]);
  });

  test("a slot that came due before the change fires by the old rule, also if the change is handled first", async () => {
    const automation = newUid();
    await publishAutomation(automation, [{ cron: "@hourly" }]);
    await w.setTime("2026-11-20T11:00:05Z");
    await changed(automation, [{ cron: "@daily" }], "20T11:00:03");
    await at("20T12:00");
    expect(await slots()).toEqual(["20T11:00 fired"]);
  });

  test("a slot between the change and its event is not lost", async () => {
    await w.setTime("2026-11-20T11:00:05Z");
    await publishAutomation(newUid(), [{ cron: "@hourly" }], { changedAt: "2026-11-20T10:59:58Z" });
    await at("20T11:01");
    expect(await slots()).toEqual(["20T11:00 fired"]);
  });

  test("a fired slot does not fire again by another rule of the same name if the clock that dates the change is slow", async () => {
    const automation = newUid();
    await publishAutomation(automation, [{ cron: "@hourly" }]);
    await at("20T11:00");
    await changed(automation, [{ cron: "*/5 * * * *" }], "20T10:56:00");
    await at("20T11:04");
    await changed(automation, [{ cron: "@hourly" }], "20T10:57:00");
    await at("20T11:59");
    expect(await slots()).toEqual(["20T11:00 fired"]);
  });

  test("a slot is not lost if the clock that dates the change is fast", async () => {
    await publishAutomation(newUid(), [{ cron: "* * * * *" }], { changedAt: "2026-11-20T10:05:00Z" });
    await at("20T10:01");
    expect(await slots()).toEqual(["20T10:01 fired"]);
  });

  test("a disabled automation comes due as well, so that factories can record the decision", async () => {
    const automation = newUid();
    const hourly = [{ cron: "@hourly" }];
    await publishAutomation(automation, hourly);
    await changed(automation, hourly, "20T10:10:00", false);
    await at("20T11:00");
    await changed(automation, hourly, "20T11:30:00");
    await at("20T12:00");
    expect(await slots()).toEqual(["20T11:00 fired", "20T12:00 fired"]);
  });

  test("a deleted automation and a deleted factory no longer come due", async () => {
    const automation = newUid();
    await publishAutomation(automation, [{ cron: "@hourly" }]);
    await publishDeletion("automation", automation);
    await publishAutomation(newUid(), [{ cron: "@hourly" }]);
    await publishDeletion("factory", FACTORY);
    expect(await w.rows("SELECT 1 FROM trigger_schedules")).toEqual([]);
  });
});

test("an event without the member schedules defines none", async () => {
  const automation = newUid();
  await publishAutomation(automation, [{ cron: "@hourly" }]);
  w.factoriesFeed.push({
    type: "millwright.automation.updated.v1",
    entityUid: automation,
    teamUid: TEAM,
    payload: { factory_uid: FACTORY, enabled: true },
  });
  await drainConsumers();
  await at("20T11:00");
  expect([await slots(), await w.rows("SELECT 1 FROM stream.dead_lettered_events")]).toEqual([[], []]);
});

test("a malformed event is dead-lettered, and other automations continue", async () => {
  await publishAutomation(newUid(), [{ cron: "61 * * * *" }]);
  await publishAutomation(newUid(), [{ cron: "@hourly" }]);
  await at("20T11:00");
  expect(await slots()).toEqual(["20T11:00 fired"]);
  expect(await w.rows("SELECT source FROM stream.dead_lettered_events")).toEqual([{ source: "factories" }]);
});

test("a running service wakes up when a slot comes due", async () => {
  const service = w.replica({ databaseTime: "now()" });
  await service.start();
  await publishAutomation(newUid(), [{ cron: "0 0 1 1 *" }]);
  await w.rows("UPDATE trigger_schedules SET last_slot_at = NULL, next_slot_at = now() + interval '50 milliseconds'");
  await eventually(async () =>
    expect(
      await w.rows("SELECT 1 FROM stream.event_log WHERE type = 'millwright.schedule_trigger.fired.v1'"),
    ).toHaveLength(1),
  );
  await service.stop();
});
