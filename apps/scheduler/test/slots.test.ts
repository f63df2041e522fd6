import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import { actorOf } from "@millwright/caller";
import { DomainError, invalidArgument } from "@millwright/errors";
import { call } from "@millwright/rpc";
import { NOW, OWNER, startWorld, TEAM, type World } from "./setup.ts";

let w: World;
beforeAll(async () => void (w = await startWorld()));
afterAll(() => w.stop());
beforeEach(() => w.reset());

/** Decides everything that is due now. */
const settle = () => w.service.slots.settleNow();
const runsOf = () => [...w.orchestrator.runs.values()];
const unavailable = () => {
  throw new DomainError({ kind: "unavailable", reason: "service_unavailable", message: "Unavailable." });
};
/** Blocks the next creation of runs until it is released. */
function blockCreate() {
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  w.orchestrator.beforeCreate = () => {
    reached.resolve();
    return released.promise;
  };
  return { reached: reached.promise, release: released.resolve };
}
/** Returns a schedule whose slot has been decided again, because the response to the creation of its run was lost. */
async function aSlotWithLostResponse(overlapPolicy = "allow"): Promise<string> {
  const { uid } = await w.aSchedule({ overlapPolicy, cronSchedule: "1 * * * *" });
  await w.setTime("2026-11-20T10:01:00Z");
  w.orchestrator.beforeResponse = unavailable;
  await settle();
  w.orchestrator.beforeResponse = () => {};
  await w.advance(2);
  await settle();
  return uid;
}
/** Handles all events of the feeds. */
async function drainConsumers(): Promise<void> {
  for (const consumer of w.service.consumers) await consumer.drain();
}

test("a slot that comes due creates one run with the schedule's settings", async () => {
  const schedule = await w.aSchedule({
    agentConfig: { name: "cfg" },
    mode: "plan",
    metadata: { team: "a" },
    cronSchedule: "1-59/2 * * * *",
  });
  await settle();
  expect(runsOf()).toEqual([]);
  await w.setTime("2026-11-20T10:01:00Z");
  await settle();
  await settle();
  const [run, ...others] = runsOf();
  expect(others).toEqual([]);
  expect(run!.request).toMatchObject({
    prompt: "Look.",
    title: "Nightly",
    mode: "plan",
    ownerType: "team",
    ownerUid: TEAM,
    source: "SCHEDULED_AGENT",
    config: { name: "cfg" },
    metadata: { team: "a" },
    causeKey: `schedule:${schedule.uid}:2026-11-20T10:01:00.000Z`,
    triggerUrl: `https://millwright.test/schedules/${schedule.uid}`,
    schedule: { scheduleId: schedule.uid, scheduleName: "Nightly", cronSchedule: "1-59/2 * * * *" },
  });
  expect([run!.caller.principal, actorOf(run!.caller)]).toMatchObject([
    { type: "service", uid: "scheduler" },
    { type: "user", uid: OWNER.principal.uid },
  ]);
  expect(await w.ledger(schedule.uid)).toEqual(["10:01 fired"]);
  expect((await w.read(schedule.uid)).nextRunAt).toMatchObject({
    seconds: BigInt(Date.parse("2026-11-20T10:03:00Z") / 1_000),
  });
});

test("slots use the database's clock instead of the machine's", async () => {
  const { uid } = await w.aSchedule();
  const ahead = w.replica({}, { now: () => new Date(NOW.getTime() + 300_000), monotonicMs: () => 0 });
  expect(await ahead.slots.settleNow()).toBe(0);
  expect(await w.ledger(uid)).toEqual([]);
});

describe("after an outage", () => {
  test("the newest slot fires, and the older ones are missed", async () => {
    const { uid } = await w.aSchedule({ cronSchedule: "0 * * * *" });
    await w.setTime("2026-11-20T13:30:00Z");
    await settle();
    expect(await w.ledger(uid)).toEqual(["11:00 missed superseded", "12:00 missed superseded", "13:00 fired"]);
    expect(runsOf()).toHaveLength(1);
  });
  test("no slot fires if none is within the catch-up window", async () => {
    const { uid } = await w.aSchedule({ cronSchedule: "0 * * * *", catchUpSeconds: 600 });
    await w.setTime("2026-11-20T12:30:00Z");
    await settle();
    await w.setTime("2026-11-20T13:10:00Z");
    await settle();
    expect(await w.ledger(uid)).toEqual([
      "11:00 missed catch_up_window",
      "12:00 missed catch_up_window",
      "13:00 fired",
    ]);
  });
  test.each<[string, number, string]>([
    ["on time for ten seconds, even with a shorter window", 10, "fired"],
    ["late after ten seconds", 11, "missed catch_up_window"],
  ])("a slot is %s", async (_name, seconds, result) => {
    const { uid } = await w.aSchedule({ cronSchedule: "0 11 * * *", catchUpSeconds: 0 });
    await w.setTime(`2026-11-20T11:00:${seconds}Z`);
    await settle();
    expect(await w.ledger(uid)).toEqual([`11:00 ${result}`]);
  });
  test("by default the window is a day", async () => {
    const { uid } = await w.aSchedule({ cronSchedule: "0 11 * * *" });
    await w.setTime("2026-11-21T11:00:00Z");
    await settle();
    expect(await w.ledger(uid)).toEqual(["11:00 missed superseded", "11:00 fired"]);
    const weekly = await w.aSchedule({ cronSchedule: "0 12 21 * *" });
    await w.setTime("2026-11-22T12:00:01Z");
    await settle();
    expect(await w.ledger(weekly.uid)).toEqual(["12:00 missed catch_up_window"]);
  });
  test("of weeks, the ledger records the newest ten thousand slots", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-12-20T10:00:00Z");
    await settle();
    const [{ missed, fired }] = (await w.rows<{ missed: number; fired: number }>(
      "SELECT count(*) FILTER (WHERE state = 'missed') AS missed, count(*) FILTER (WHERE state = 'fired') AS fired FROM slots WHERE schedule_uid = $1",
      [uid],
    )) as [{ missed: number; fired: number }];
    expect([missed, fired, runsOf().length]).toEqual([9_999, 1, 1]);
  });
});

describe("when the orchestrator", () => {
  test("is unavailable, the slot is retried and fires late", async () => {
    const { uid } = await w.aSchedule({ cronSchedule: "1 * * * *" });
    await w.setTime("2026-11-20T10:01:00Z");
    w.orchestrator.beforeCreate = unavailable;
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:01 due"]);
    w.orchestrator.beforeCreate = () => {};
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:01 due"]); // the retry is not due yet
    await w.advance(2);
    await settle();
    expect([await w.ledger(uid), runsOf().length]).toEqual([["10:01 fired"], 1]);
  });
  test("is unavailable until the next slot, only the next slot fires", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-11-20T10:01:00Z");
    w.orchestrator.beforeCreate = unavailable;
    await settle();
    await w.setTime("2026-11-20T10:02:00Z");
    w.orchestrator.beforeCreate = () => {};
    await settle();
    expect([await w.ledger(uid), runsOf().length]).toEqual([["10:01 missed superseded", "10:02 fired"], 1]);
  });
  test("created the run but the response was lost, the slot has that run", async () => {
    const uid = await aSlotWithLostResponse();
    expect([await w.ledger(uid), runsOf().length]).toEqual([["10:01 fired"], 1]);
  });
  test("created the run of a slot that was then missed, the run's event makes the slot fired", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-11-20T10:01:00Z");
    w.orchestrator.beforeResponse = unavailable;
    await settle();
    await w.setTime("2026-11-20T10:02:00Z");
    w.orchestrator.beforeResponse = () => {};
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:01 missed superseded", "10:02 fired"]);
    await drainConsumers();
    expect([await w.ledger(uid), runsOf().length]).toEqual([["10:01 fired", "10:02 fired"], 2]);
  });
  test("refuses, the slot is skipped and the schedule reports the error until a slot fires", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-11-20T10:01:00Z");
    w.orchestrator.beforeCreate = () => {
      throw invalidArgument("model_unknown", "Unknown model.");
    };
    await settle();
    expect([await w.ledger(uid), (await w.read(uid)).lastSpawnError]).toEqual([
      ["10:01 skipped spawn_failed"],
      "Unknown model.",
    ]);
    expect((await w.schedules.listSlots({ scheduleUid: uid }, call(OWNER))).slots[0]!.message).toBe("Unknown model.");
    w.orchestrator.beforeCreate = () => {};
    await w.setTime("2026-11-20T10:02:00Z");
    await settle();
    expect([(await w.ledger(uid)).at(-1), (await w.read(uid)).lastSpawnError]).toEqual(["10:02 fired", undefined]);
  });
  test("refuses one run of a batch, the others are created", async () => {
    const bad = await w.aSchedule({ name: "bad", prompt: "bad" });
    for (let n = 0; n < 5; n += 1) await w.aSchedule({ name: `good ${n}` });
    await w.setTime("2026-11-20T10:01:00Z");
    w.orchestrator.beforeCreate = (requests) => {
      if (requests.some(({ prompt }) => prompt === "bad")) throw invalidArgument("model_unknown", "No.");
    };
    await settle();
    expect([runsOf().length, await w.ledger(bad.uid)]).toEqual([5, ["10:01 skipped spawn_failed"]]);
  });
});

test("slots that are due at the same time create their runs in batches per creator", async () => {
  for (let n = 0; n < 300; n += 1) await w.aSchedule({ name: `s ${n}` });
  await w.aSchedule({ name: "own", ownerType: "user", ownerUid: OWNER.principal.uid });
  await w.setTime("2026-11-20T10:01:00Z");
  await settle();
  expect(w.orchestrator.batches.toSorted((a, b) => a - b)).toEqual([1, 50, 250]);
});

describe("old slots", () => {
  const daily = { cronSchedule: "0 12 * * *" };
  /** Settles noon of the given number of consecutive days. */
  async function pass(days: number): Promise<void> {
    for (let day = 0; day < days; day += 1) {
      await w.setTime(new Date(Date.parse("2026-11-20T12:00:00Z") + day * 86_400_000));
      await settle();
    }
  }

  test("are pruned, except the newest of a schedule and undecided ones", async () => {
    const { uid } = await w.aSchedule(daily);
    const { uid: waiting } = await w.aSchedule({ ...daily, overlapPolicy: "buffer_one" });
    await pass(3);
    expect(await w.service.pruneSlots()).toBe(0);
    await w.setTime("2027-02-19T11:00:00Z"); // the first day is 91 days ago
    expect(await w.service.pruneSlots()).toBe(2);
    await w.setTime("2028-01-01T00:00:00Z");
    await w.service.pruneSlots();
    expect([await w.ledger(uid), (await w.ledger(waiting)).includes("12:00 buffered")]).toEqual([
      ["12:00 fired"],
      true,
    ]);
  });

  test("of a deleted schedule are all pruned", async () => {
    const { uid } = await w.aSchedule(daily);
    await pass(2);
    await w.schedules.deleteSchedule({ uid }, call(OWNER));
    await w.setTime("2028-01-01T00:00:00Z");
    expect([await w.service.pruneSlots(), await w.rows("SELECT 1 FROM slots")]).toEqual([2, []]);
  });

  test("never come due again, even if the clock is set back and the schedule is resumed", async () => {
    const { uid } = await w.aSchedule(daily);
    await pass(3);
    await w.setTime("2028-01-01T00:00:00Z");
    await w.service.pruneSlots();
    const runCount = runsOf().length;
    await w.setTime("2026-11-20T11:00:00Z");
    for (const enabled of [false, true]) await w.schedules.setEnabled({ uid, enabled }, call(OWNER));
    await w.setTime("2026-11-22T12:30:00Z");
    await settle();
    expect([runsOf().length, (await w.read(uid)).nextRunAt?.seconds]).toEqual([
      runCount,
      BigInt(Date.parse("2026-11-23T12:00:00Z") / 1_000),
    ]);
  });
});

describe("a leased slot that is not decided", () => {
  test("is decided by another replica only after the lease has ended", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-11-20T10:01:00Z");
    const blocked = blockCreate(); // the first replica hangs
    const stuck = settle();
    await blocked.reached;
    const other = w.replica();
    w.orchestrator.beforeCreate = () => {};
    expect(await other.slots.settleNow()).toBe(0);
    await w.advance(31);
    await other.slots.settleNow();
    expect([await w.ledger(uid), runsOf().length]).toEqual([["10:01 fired"], 1]);
    blocked.release();
    await stuck;
    expect([await w.ledger(uid), runsOf().length]).toEqual([["10:01 fired"], 1]);
  });
});

describe("while a run of an earlier slot is active", () => {
  const twice = async (overlapPolicy: string) => {
    const { uid } = await w.aSchedule({ overlapPolicy });
    for (const minute of ["01", "02"]) {
      await w.setTime(`2026-11-20T10:${minute}:00Z`);
      await settle();
    }
    return uid;
  };
  const first = () => runsOf()[0]!.uid;

  test("allow starts another", async () =>
    expect(await w.ledger(await twice("allow"))).toEqual(["10:01 fired", "10:02 fired"]));

  test("skip starts none until the run has ended", async () => {
    const uid = await twice("skip");
    expect(await w.ledger(uid)).toEqual(["10:01 fired", "10:02 skipped overlap"]);
    w.orchestrator.finish(first(), "FAILED");
    await w.setTime("2026-11-20T10:03:00Z");
    await settle();
    expect((await w.ledger(uid)).at(-1)).toBe("10:03 fired");
  });

  test("buffer_one buffers one slot until the run ends and skips the rest", async () => {
    const uid = await twice("buffer_one");
    await w.setTime("2026-11-20T10:03:00Z");
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:01 fired", "10:02 buffered", "10:03 skipped overlap"]);
    w.orchestrator.finish(first(), "SUCCEEDED");
    await drainConsumers();
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:01 fired", "10:02 fired", "10:03 skipped overlap"]);
    expect(runsOf().map(({ cause }) => cause.slice(-13, -8))).toEqual(["10:01", "10:02"]);
  });

  test("buffer_one also polls in case the event of the end is late", async () => {
    const uid = await twice("buffer_one");
    w.orchestrator.finish(first(), "SUCCEEDED");
    await w.advance(6);
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:01 fired", "10:02 fired"]);
  });

  test("cancel_other cancels the run and starts another", async () => {
    const uid = await twice("cancel_other");
    expect([await w.ledger(uid), w.orchestrator.cancelled, runsOf().map(({ state }) => state)]).toEqual([
      ["10:01 fired", "10:02 fired"],
      [first()],
      ["CANCELLED", "QUEUED"],
    ]);
  });

  test("cancel_other waits while the run is PENDING", async () => {
    w.orchestrator.beforeCancel = () => {
      throw new DomainError({ kind: "conflict", reason: "run_pending", message: "In a moment.", retryable: true });
    };
    const uid = await twice("cancel_other");
    expect(await w.ledger(uid)).toEqual(["10:01 fired", "10:02 due"]);
    w.orchestrator.beforeCancel = () => {};
    await w.advance(1);
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:01 fired", "10:02 fired"]);
  });

  test.each(["skip", "buffer_one", "cancel_other"])(
    "%s fires a slot with its own run if the response was lost",
    async (overlapPolicy) => {
      const uid = await aSlotWithLostResponse(overlapPolicy);
      expect([await w.ledger(uid), runsOf().map(({ state }) => state), w.orchestrator.cancelled]).toEqual([
        ["10:01 fired"],
        ["QUEUED"],
        [],
      ]);
      expect(await w.rows("SELECT run_uid FROM slots")).toEqual([{ run_uid: first() }]);
    },
  );

  test("two replicas do not decide two slots of a schedule concurrently", async () => {
    const { uid } = await w.aSchedule({ overlapPolicy: "skip" });
    await w.setTime("2026-11-20T10:01:00Z");
    const blocked = blockCreate();
    const slow = settle();
    await blocked.reached;
    await w.advance(20); // within the lease
    await w.t.database.sql.query("UPDATE schedules SET next_slot_at = (SELECT at FROM test_clock) WHERE uid = $1", [
      uid,
    ]);
    const other = w.replica();
    await other.slots.settleNow();
    expect(await w.ledger(uid)).toEqual(["10:01 due", "10:01 due"]);
    blocked.release();
    await slow;
    w.orchestrator.beforeCreate = () => {};
    await other.slots.settleNow();
    expect(await w.ledger(uid)).toEqual(["10:01 fired", "10:01 skipped overlap"]);
  });
});

describe("a schedule that is", () => {
  test("paused has no slots, and resumed comes due after now", async () => {
    const { uid } = await w.aSchedule();
    const paused = (await w.schedules.setEnabled({ uid, enabled: false }, call(OWNER))).schedule!;
    expect([paused.enabled, paused.nextRunAt]).toEqual([false, undefined]);
    await w.setTime("2026-11-20T10:05:30Z");
    await settle();
    await w.schedules.setEnabled({ uid, enabled: true }, call(OWNER));
    await settle();
    expect(await w.ledger(uid)).toEqual([]);
    await w.setTime("2026-11-20T10:06:00Z");
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:06 fired"]);
  });
  test("paused right after a slot came due skips the slot", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-11-20T10:01:00Z");
    await w.schedules.setEnabled({ uid, enabled: false }, call(OWNER));
    await settle();
    expect([await w.ledger(uid), runsOf()]).toEqual([["10:01 skipped paused"], []]);
  });
  test("deleted does not fire a pending slot", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-11-20T10:01:00Z");
    w.orchestrator.beforeCreate = unavailable;
    await settle();
    w.orchestrator.beforeCreate = () => {};
    await w.schedules.deleteSchedule({ uid }, call(OWNER));
    await w.advance(120);
    await settle();
    expect([runsOf(), await w.rows("SELECT state, reason FROM slots")]).toEqual([
      [],
      [{ state: "skipped", reason: "deleted" }],
    ]);
  });
  test("given another rule fires slots that were due by the old rule, then follows the new one", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-11-20T10:01:10Z");
    await w.schedules.replaceSchedule(
      { schedule: { uid, name: "n", cronSchedule: "0 12 * * *", enabled: true, prompt: "p" } },
      call(OWNER),
    );
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:01 fired"]);
    await w.setTime("2026-11-20T12:00:00Z");
    await settle();
    expect(await w.ledger(uid)).toEqual(["10:01 fired", "12:00 fired"]);
  });
  test("given the same rule back within a slot does not fire the slot again", async () => {
    const { uid } = await w.aSchedule();
    await w.setTime("2026-11-20T10:01:00Z");
    await settle();
    await w.t.database.sql.query("UPDATE schedules SET next_slot_at = '2026-11-20T10:01:00Z'"); // as after the clock was set back
    await settle();
    expect([await w.ledger(uid), runsOf().length]).toEqual([["10:01 fired"], 1]);
  });
});

test("last_ran_at is the end of the last successful run", async () => {
  const { uid } = await w.aSchedule();
  for (const [minute, state] of [
    ["01", "SUCCEEDED"],
    ["02", "FAILED"],
  ] as const) {
    await w.setTime(`2026-11-20T10:${minute}:00Z`);
    await settle();
    w.orchestrator.finish(runsOf().at(-1)!.uid, state);
  }
  expect((await w.read(uid)).lastRanAt).toBeUndefined();
  await drainConsumers();
  expect((await w.read(uid)).lastRanAt).toMatchObject({ seconds: BigInt(Date.parse("2026-11-20T12:00:00Z") / 1_000) });
});
