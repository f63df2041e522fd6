import { Cron as Croner } from "croner";
import { nextSlot, slotsUntil } from "./next-slot.ts";
import { parseCron } from "./parse-cron.ts";
import { isTimeZone, ZoneOffsets } from "./zone-offsets.ts";

const iso = (date: Date | undefined): string => (date ? date.toISOString().slice(0, 16) : "never");

function slotsBetween(text: string, zone: string | null, from: string, to: string): string[] {
  const cron = parseCron(text, "schedule");
  const found: string[] = [];
  for (let at = nextSlot(cron, zone, new Date(from)); at && at <= new Date(to); at = nextSlot(cron, zone, at))
    found.push(iso(at));
  return found;
}

describe("an expression that names hours follows the wall clock", () => {
  const ny = (text: string, from: string, to: string) => slotsBetween(text, "America/New_York", from, to);

  test("a skipped local time is due once, after the clock has moved on", () => {
    expect(ny("30 2 * * *", "2026-03-07T00:00Z", "2026-03-09T23:00Z")).toEqual([
      "2026-03-07T07:30",
      "2026-03-08T07:00",
      "2026-03-09T06:30",
    ]);
    expect(ny("*/10 2 * * *", "2026-03-08T00:00Z", "2026-03-08T23:00Z")).toEqual(["2026-03-08T07:00"]);
    expect(ny("0,30 2,3 * * *", "2026-03-08T00:00Z", "2026-03-08T23:00Z")).toEqual([
      "2026-03-08T07:00",
      "2026-03-08T07:30",
    ]);
  });
  test("a time that occurs twice is due once, at its first occurrence", () => {
    expect(ny("30 1 * * *", "2026-10-31T12:00Z", "2026-11-02T12:00Z")).toEqual([
      "2026-11-01T05:30",
      "2026-11-02T06:30",
    ]);
    expect(ny("*/30 1,2 * * *", "2026-11-01T00:00Z", "2026-11-01T12:00Z")).toEqual([
      "2026-11-01T05:00",
      "2026-11-01T05:30",
      "2026-11-01T07:00",
      "2026-11-01T07:30",
    ]);
  });
  test("within the repeated hour, past slots are not due again", () => {
    expect(iso(nextSlot(parseCron("45 1 * * *", "schedule"), "America/New_York", new Date("2026-11-01T06:10Z")))).toBe(
      "2026-11-02T06:45",
    );
  });
});

test("an expression for every hour follows elapsed time", () => {
  expect(slotsBetween("30 * * * *", "America/New_York", "2026-03-08T05:00Z", "2026-03-08T09:00Z")).toEqual([
    "2026-03-08T05:30",
    "2026-03-08T06:30",
    "2026-03-08T07:30",
    "2026-03-08T08:30",
  ]);
  expect(slotsBetween("0 * * * *", "America/New_York", "2026-11-01T03:30Z", "2026-11-01T08:00Z")).toEqual([
    "2026-11-01T04:00",
    "2026-11-01T05:00",
    "2026-11-01T06:00",
    "2026-11-01T07:00",
    "2026-11-01T08:00",
  ]);
});

test("a day that a country skipped is due once, at its end", () => {
  expect(slotsBetween("0 12 * * *", "Pacific/Apia", "2011-12-29T00:00Z", "2011-12-31T12:00Z")).toEqual([
    "2011-12-29T22:00",
    "2011-12-30T10:00",
    "2011-12-30T22:00",
  ]);
});

test("returns only the newest of many slots", () => {
  const [first, now] = [new Date("2026-01-01T00:00Z"), new Date("2026-01-03T00:00Z")];
  const { slots, next } = slotsUntil(parseCron("* * * * *", "schedule"), null, first, now, 100);
  expect(next!.getTime() - slots.at(-1)!.getTime()).toBe(60_000);
  expect([slots.length, iso(slots[0]), iso(slots.at(-1))]).toEqual([100, "2026-01-02T22:21", "2026-01-03T00:00"]);
  expect(slotsUntil(parseCron("0 0 * * *", "schedule"), null, first, now, 100).slots.map(iso)).toEqual([
    "2026-01-01T00:00",
    "2026-01-02T00:00",
    "2026-01-03T00:00",
  ]);
});

test.each(["Europe/Berlin", "UTC", "Asia/Kathmandu", "Etc/GMT+5"])("%s is a time zone", (name) =>
  expect(isTimeZone(name)).toBe(true),
);
test.each(["", "Mars/Olympus", "+02:00", "Europe/Berlin ", "local", "../x", "é"])("%j is not a time zone", (name) =>
  expect(isTimeZone(name)).toBe(false),
);

/**
 * Both hemispheres; whole, half and quarter hours; changes at and around midnight; a change of half an hour; zones
 * without changes.
 */
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
  "Asia/Kathmandu",
  "Australia/Adelaide",
  "Australia/Lord_Howe",
  "Pacific/Chatham",
  "Pacific/Auckland",
];
/** croner's definition of a fixed time: no field of its time of day has a wildcard or a step. Ours differs. */
const RULES: readonly (readonly [string, string])[] = [
  ["30 2 * * *", "30 2 * * *"],
  ["0 0 * * *", "0 0 * * *"],
  ["15 1 * * *", "15 1 * * *"],
  ["0 3 * * SUN", "0 3 * * SUN"],
  ["45 23 * * *", "45 23 * * *"],
  ["0,30 1,2 * * *", "0,30 1,2 * * *"],
  ["*/15 2 * * *", "0,15,30,45 2 * * *"],
  ["0 */3 * * *", "0 0,3,6,9,12,15,18,21 * * *"],
  ["0 1-4 * * *", "0 1-4 * * *"],
  ["0 * * * *", "0 * * * *"],
  ["*/20 * * * *", "*/20 * * * *"],
  ["7,37 * * * *", "7,37 * * * *"],
  ["0 4 1 * MON", "0 4 1 * MON"],
];

/** Without the hour before midnight in Nuuk: croner drops a time whose substitute is on the next day; we do not. */
const isGivenUp = (zone: string, rule: string): boolean => zone === "America/Nuuk" && rule === "45 23 * * *";
test("a time whose substitute is on the next day is due then", () => {
  expect(slotsBetween("45 23 * * *", "America/Nuuk", "2026-03-28T02:00Z", "2026-03-29T12:00Z")).toEqual([
    "2026-03-29T01:00",
  ]);
});

describe.each(ZONES)("in %s, both edges of two years match croner", (zone) => {
  const offsets = ZoneOffsets.of(zone);
  const changes: number[] = [];
  for (
    let at = offsets.nextChange(Date.UTC(2026, 0, 1), Date.UTC(2028, 0, 1));
    at !== undefined;
    at = offsets.nextChange(at, Date.UTC(2028, 0, 1))
  )
    changes.push(at);

  test.each(RULES.filter(([ours]) => !isGivenUp(zone, ours)))("%s", (ours, theirs) => {
    const cron = parseCron(ours, "schedule");
    const croner = new Croner(theirs, { timezone: zone, paused: true, fixedTimeRule: "no-wildcard" });
    for (const change of changes.length > 0 ? changes : [Date.UTC(2026, 5, 1)]) {
      const expected: string[] = [];
      const found: string[] = [];
      const end = new Date(change + 36 * 3_600_000);
      const start = new Date(change - 36 * 3_600_000);
      for (let at = croner.nextRun(start); at && at <= end; at = croner.nextRun(at))
        if (expected.at(-1) !== iso(at)) expected.push(iso(at));
      for (let at = nextSlot(cron, zone, start); at && at <= end; at = nextSlot(cron, zone, at)) found.push(iso(at));
      expect({ change: iso(new Date(change)), slots: found }).toEqual({
        change: iso(new Date(change)),
        slots: expected,
      });
    }
  });
});

test.each([
  ["America/Nuuk", "0 0 * * *"],
  ["Europe/Berlin", "*/30 * * * *"],
  ["Australia/Lord_Howe", "15 2 * * *"],
])("in %s, two years of %s match croner", (zone, rule) => {
  const croner = new Croner(rule, { timezone: zone, paused: true, fixedTimeRule: "no-wildcard" });
  const cron = parseCron(rule, "schedule");
  const [ours, theirs] = [["2026-01-01T00:00"], ["2026-01-01T00:00"]];
  while (theirs.at(-1)! < "2028" && ours.at(-1) === theirs.at(-1)) {
    theirs.push(iso(croner.nextRun(new Date(`${theirs.at(-1)}Z`))!));
    ours.push(iso(nextSlot(cron, zone, new Date(`${ours.at(-1)}Z`))));
  }
  expect(ours.slice(-3)).toEqual(theirs.slice(-3));
});
