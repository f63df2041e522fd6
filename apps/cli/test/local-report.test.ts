import { expect, test } from "@jest/globals";
import { LocalReport } from "../src/local-report.ts";

const shown = (report: LocalReport) =>
  report.next().map((event) => [event.seq, event.kind === "output" ? `${event.stream}: ${event.text}` : event.kind]);

test("batches output of one stream until it is sent, and resends it unchanged until it is acknowledged", () => {
  const report = new LocalReport();
  for (const text of ["a", "b"]) report.output("stdout", text);
  report.output("stderr", "x");
  expect(shown(report)).toEqual([
    [1, "stdout: ab"],
    [2, "stderr: x"],
  ]);
  report.output("stderr", "y");
  expect(shown(report)).toEqual([
    [1, "stdout: ab"],
    [2, "stderr: x"],
    [3, "stderr: y"],
  ]);
  report.acknowledged(2);
  expect(shown(report)).toEqual([[3, "stderr: y"]]);
});

test("splits long output", () => {
  const report = new LocalReport();
  report.output("stdout", "a".repeat(70_000));
  expect(report.next().map((event) => (event.kind === "output" ? event.text.length : 0))).toEqual([
    32_768, 32_768, 4_464,
  ]);
});

test("bounds the buffer while the platform does not respond, and reports how much output was omitted", () => {
  const report = new LocalReport();
  for (let n = 0; n < 300; n++) report.output("stdout", "a".repeat(10_000));
  report.end({ exitCode: 0, interrupted: false });
  let sentChars = 0;
  const notes: string[] = [];
  for (let events = report.next(); events.length > 0; report.acknowledged(events.at(-1)!.seq), events = report.next()) {
    for (const event of events) {
      if (event.kind !== "output") continue;
      if (event.text.startsWith("[…")) notes.push(event.text);
      else sentChars += event.text.length;
    }
  }
  expect([sentChars, notes]).toEqual([2_000_000, ["[… 1000000 characters left out …]\n"]]);
  expect(report.hasEnded).toBe(true);
});

test("the final event has the beginning and the end of the output", () => {
  const report = new LocalReport();
  report.output("stdout", `first ${"a".repeat(100_000)} last`);
  report.end({ exitCode: 3, interrupted: false });
  report.acknowledged(4);
  const [end] = report.next();
  expect(end).toMatchObject({
    kind: "ended",
    exit_code: 3,
    interrupted: false,
    truncated: true,
    output: expect.stringMatching(/^first a+\n\[…\]\na+ last$/),
  });
});
