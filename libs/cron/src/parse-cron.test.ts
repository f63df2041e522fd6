import { isDomainError } from "@millwright/errors";
import { nextSlot } from "./next-slot.ts";
import { parseCron, type CronDialect } from "./parse-cron.ts";

const FROM = new Date("2026-01-01T00:00:00Z"); // a Thursday

const slots = (text: string, dialect: CronDialect = "schedule", count = 3): string[] => {
  const cron = parseCron(text, dialect);
  const found: string[] = [];
  for (let at = nextSlot(cron, null, FROM); at && found.length < count; at = nextSlot(cron, null, at))
    found.push(at.toISOString().slice(2, 16));
  return found;
};

test.each([
  ["* * * * *", ["26-01-01T00:01", "26-01-01T00:02", "26-01-01T00:03"]],
  ["*/20 * * * *", ["26-01-01T00:20", "26-01-01T00:40", "26-01-01T01:00"]],
  ["5,1-2 3 * * *", ["26-01-01T03:01", "26-01-01T03:02", "26-01-01T03:05"]],
  ["10-50/20 * * * *", ["26-01-01T00:10", "26-01-01T00:30", "26-01-01T00:50"]],
  ["0 0 * * 0", ["26-01-04T00:00", "26-01-11T00:00", "26-01-18T00:00"]],
  ["0 0 * * 7", ["26-01-04T00:00", "26-01-11T00:00", "26-01-18T00:00"]],
  ["0 0 * * sun", ["26-01-04T00:00", "26-01-11T00:00", "26-01-18T00:00"]],
  ["0 0 * * SAT-SUN", ["26-01-03T00:00", "26-01-04T00:00", "26-01-10T00:00"]],
  ["0 0 * * 5-7", ["26-01-02T00:00", "26-01-03T00:00", "26-01-04T00:00"]],
  ["0 9 * * MON-FRI", ["26-01-01T09:00", "26-01-02T09:00", "26-01-05T09:00"]],
  ["0 0 1 Jan,jul *", ["26-07-01T00:00", "27-01-01T00:00", "27-07-01T00:00"]],
  ["0 0 31 * *", ["26-01-31T00:00", "26-03-31T00:00", "26-05-31T00:00"]],
  ["0 0 29 2 *", ["28-02-29T00:00", "32-02-29T00:00", "36-02-29T00:00"]],
  ["  0   12 \t* * *  ", ["26-01-01T12:00", "26-01-02T12:00", "26-01-03T12:00"]],
])("%s is due at the times of crontab(5)", (text, expected) => expect(slots(text)).toEqual(expected));

test("day of month and day of week are OR-ed when both are restricted", () => {
  expect(slots("0 0 13 * FRI")).toEqual(["26-01-02T00:00", "26-01-09T00:00", "26-01-13T00:00"]);
  expect(slots("0 0 13 * *")).toEqual(["26-01-13T00:00", "26-02-13T00:00", "26-03-13T00:00"]);
  expect(slots("0 0 * * FRI")).toEqual(["26-01-02T00:00", "26-01-09T00:00", "26-01-16T00:00"]);
});

test.each([
  "",
  "* * * *",
  "* * * * * *",
  "60 * * * *",
  "* 24 * * *",
  "* * 0 * *",
  "* * 32 * *",
  "* * * 13 *",
  "* * * 0 *",
  "* * * * 8",
  "-1 * * * *",
  "a * * * *",
  "1.5 * * * *",
  "* * * FOO *",
  "* * * * FUNDAY",
  "MON * * * *",
  "5-1 * * * *",
  "1-2-3 * * * *",
  "*/0 * * * *",
  "*/60 * * * *",
  "*/x * * * *",
  "*/5/2 * * * *",
  "0/15 * * * *",
  ",1 * * * *",
  "1, * * * *",
  "- * * * *",
  "/5 * * * *",
  "? * * * *",
  "L * * * *",
  "* * 15W * *",
  "* * * * 5#2",
  "0 0 30 2 *",
  "0 0 31 4,6,9,11 *",
  "@daily",
  "@every 1h",
  "@reboot",
  "0".repeat(300),
  "٣ * * * *",
])("%j is rejected", (text) => {
  let error: unknown;
  try {
    parseCron(text, "schedule");
  } catch (caught) {
    error = caught;
  }
  expect(isDomainError(error) && [error.kind, error.reason]).toEqual(["invalid_argument", "cron_invalid"]);
});

test("a day that none of the months has is due by its day of the week", () => {
  expect(slots("0 0 30 2 MON")).toEqual(["26-02-02T00:00", "26-02-09T00:00", "26-02-16T00:00"]);
});

describe("the dialect of triggers", () => {
  test.each([
    ["@hourly", ["26-01-01T01:00", "26-01-01T02:00", "26-01-01T03:00"]],
    ["@daily", ["26-01-02T00:00", "26-01-03T00:00", "26-01-04T00:00"]],
    ["@midnight", ["26-01-02T00:00", "26-01-03T00:00", "26-01-04T00:00"]],
    ["@Weekly", ["26-01-04T00:00", "26-01-11T00:00", "26-01-18T00:00"]],
    ["@monthly", ["26-02-01T00:00", "26-03-01T00:00", "26-04-01T00:00"]],
    ["@yearly", ["27-01-01T00:00", "28-01-01T00:00", "29-01-01T00:00"]],
    ["@annually", ["27-01-01T00:00", "28-01-01T00:00", "29-01-01T00:00"]],
    ["@every 1h", ["26-01-01T01:00", "26-01-01T02:00", "26-01-01T03:00"]],
    ["@every 1h30m", ["26-01-01T01:30", "26-01-01T03:00", "26-01-01T04:30"]],
    ["@every 90s", ["26-01-01T00:01", "26-01-01T00:03", "26-01-01T00:04"]],
    ["*/20 * * * *", ["26-01-01T00:20", "26-01-01T00:40", "26-01-01T01:00"]],
  ])("%s", (text, expected) => expect(slots(text, "trigger")).toEqual(expected));

  test("@every is due at multiples of its period since the epoch, independent of the time of the call", () => {
    const every = parseCron("@every 7m", "trigger");
    const slot = nextSlot(every, "Europe/Berlin", FROM)!.getTime();
    expect(slot % (7 * 60_000)).toBe(0);
    expect(nextSlot(every, null, new Date(slot - 1))!.getTime()).toBe(slot);
    expect(nextSlot(every, null, new Date(slot))!.getTime()).toBe(slot + 7 * 60_000);
  });

  test.each([
    "@reboot",
    "@every",
    "@every 5",
    "@every 30s",
    "@every -1h",
    "@every 1h 30m",
    "@every 9999h",
    "@every 1.5h",
    "@",
  ])("%j is rejected", (text) => {
    expect(() => parseCron(text, "trigger")).toThrow(expect.objectContaining({ reason: "cron_invalid" }));
  });
});
