import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ZoneOffsets } from "@millwright/cron";
import { Cron as Croner } from "croner";
import { NOW, startWorld, type World } from "./setup.ts";

/** Two years after NOW. */
const END = NOW.getTime() + 2 * 366 * 86_400_000;
const HOUR_MS = 3_600_000;
const STEP_MS = HOUR_MS / 2;
const REPLICAS = 8;
const SKEW_MS = 300_000;

const ZONES = [
  "Europe/Berlin",
  "Europe/London",
  "Europe/Lisbon",
  "Europe/Chisinau",
  "America/New_York",
  "America/Los_Angeles",
  "America/St_Johns",
  "America/Havana",
  "America/Santiago",
  "America/Asuncion",
  "America/Nuuk",
  "Atlantic/Azores",
  "Africa/Cairo",
  "Africa/Casablanca",
  "Asia/Beirut",
  "Asia/Jerusalem",
  "Australia/Adelaide",
  "Australia/Lord_Howe",
  "Pacific/Chatham",
  "Pacific/Auckland",
];
/** At half hours, so that each time step sees one slot. */
const RULES = ["30 2 * * *", "30 1 * * *", "0 0 * * *", "0,30 1,3 * * SAT,SUN,MON"];

let w: World;
beforeAll(async () => void (w = await startWorld()));
afterAll(() => w.stop());

/** Returns two hours before and after each change of clocks in any zone; overlapping windows are merged. */
function windows(): [number, number][] {
  const changes = ZONES.flatMap((zone) => {
    const found: number[] = [];
    for (
      let at = ZoneOffsets.of(zone).nextChange(NOW.getTime(), END);
      at !== undefined;
      at = ZoneOffsets.of(zone).nextChange(at, END)
    )
      found.push(at);
    return found;
  });
  const merged: [number, number][] = [];
  for (const at of [...new Set(changes)].toSorted((a, b) => a - b)) {
    const last = merged.at(-1);
    if (last && at - 2 * HOUR_MS <= last[1]) last[1] = at + 2 * HOUR_MS;
    else merged.push([at - 2 * HOUR_MS, at + 2 * HOUR_MS]);
  }
  return merged;
}

// libs/cron compares the rules with croner; this test covers the whole service: rows, leases and runs.
test("eight replicas with different clocks fire each slot of twenty zones once over two years of clock changes", async () => {
  const replicas = Array.from({ length: REPLICAS }, (_, n) =>
    w.replica(
      { poolSize: 1 },
      { now: () => new Date(Date.now() + (n % 2 ? SKEW_MS : -SKEW_MS)), monotonicMs: () => performance.now() },
    ),
  );
  const schedules = await Promise.all(
    ZONES.flatMap((timeZone) =>
      RULES.map(async (cronSchedule) => ({
        timeZone,
        cronSchedule,
        uid: (
          await w.aSchedule({ name: `${timeZone} ${cronSchedule}`, timeZone, cronSchedule, catchUpSeconds: 86_400 })
        ).uid,
      })),
    ),
  );
  const edges = windows();
  expect(edges.length).toBeGreaterThan(20);
  for (const [from, to] of edges) {
    for (let at = Math.floor(from / STEP_MS) * STEP_MS; at <= to; at += STEP_MS) {
      await w.setTime(new Date(at));
      await Promise.all(replicas.map(({ slots }) => slots.settleNow()));
    }
  }

  const until = edges.at(-1)![1];
  const isInWindow = (at: number): boolean => edges.some(([from, to]) => at > from + STEP_MS && at <= to);
  for (const { uid, timeZone, cronSchedule } of schedules) {
    const rows = await w.rows<{ slot_at: Date; state: string }>(
      "SELECT slot_at, state FROM slots WHERE schedule_uid = $1 ORDER BY slot_at",
      [uid],
    );
    const found = rows.map(({ slot_at: at }) => at.toISOString());
    const croner = new Croner(cronSchedule, { timezone: timeZone, paused: true, fixedTimeRule: "no-wildcard" });
    const expected: string[] = [];
    for (
      let at = croner.nextRun(NOW);
      at && at.getTime() <= Math.floor(until / STEP_MS) * STEP_MS;
      at = croner.nextRun(at)
    )
      if (expected.at(-1) !== at.toISOString()) expected.push(at.toISOString());
    expect({ timeZone, cronSchedule, slots: found }).toEqual({ timeZone, cronSchedule, slots: expected });
    expect(rows.filter(({ slot_at: at, state }) => isInWindow(at.getTime()) && state !== "fired")).toEqual([]);
  }
  const [{ fired }] = (await w.rows<{ fired: number }>(
    "SELECT count(DISTINCT run_uid) AS fired FROM slots WHERE state = 'fired' HAVING count(*) = count(DISTINCT run_uid)",
  )) as [{ fired: number }];
  expect(fired).toBe(w.orchestrator.runs.size);
});
