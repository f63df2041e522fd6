import { existsSync, readFileSync } from "node:fs";
import { resolve } from "node:path";
import { afterEach, expect, jest, test } from "@jest/globals";
import ClosingLine from "./closing-line.ts";
import { isLeftOut, rankOf } from "./suites.ts";
import runSuite from "./test-runner.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const CORE = "apps/system-tests/test/journey.test.ts";
const SERVICE = "apps/gateway/test/run-views.test.ts";
const FURTHER = "apps/system-tests/test/key-rotation.test.ts";
const PREVIOUS_RELEASE = "tools/deploy/previous-release.test.ts";

const { MILLWRIGHT_TEST_DEADLINE: deadline = "" } = process.env;
afterEach(() => void (process.env["MILLWRIGHT_TEST_DEADLINE"] = deadline));

test("core system tests start first, suites of services next, then the previous release and further system tests", () => {
  const ranks = [CORE, SERVICE, PREVIOUS_RELEASE, FURTHER].map(rankOf);
  expect(ranks).toEqual(ranks.toSorted((a, b) => a - b));
  expect(new Set(ranks).size).toBe(4);
});

test("every suite that starts first exists", () => {
  const paths = readFileSync(resolve(import.meta.dirname, "suites.ts"), "utf8").match(/"[^"]+\.test\.ts"/g) ?? [];
  expect(paths.length).toBeGreaterThan(10);
  expect(paths.map((path) => JSON.parse(path) as string).filter((path) => !existsSync(resolve(ROOT, path)))).toEqual(
    [],
  );
});

test("leaves out only further system tests and the previous release, from the deadline on", () => {
  for (const suite of [FURTHER, PREVIOUS_RELEASE]) {
    expect(isLeftOut(suite, 99_999, "100")).toBe(false);
    expect(isLeftOut(suite, 100_000, "100")).toBe(true);
    expect(isLeftOut(suite, 100_000, "")).toBe(false);
  }
  for (const suite of [CORE, SERVICE]) expect(isLeftOut(suite, 100_000, "100")).toBe(false);
});

test("rejects a deadline that is not a number of seconds", () => {
  expect(() => isLeftOut(FURTHER, 0, "in an hour")).toThrow("MILLWRIGHT_TEST_DEADLINE is a time in seconds");
});

test("a suite that was left out is skipped, and the test run names it", async () => {
  process.env["MILLWRIGHT_TEST_DEADLINE"] = "1";
  const path = resolve(ROOT, FURTHER);
  const config = { rootDir: ROOT };
  const result = await runSuite({}, config, undefined, undefined, path, undefined);
  expect(result).toMatchObject({ testFilePath: path, numPendingTests: 1, numPassingTests: 0, numFailingTests: 0 });

  const written: unknown[] = [];
  const write = jest.spyOn(process.stdout, "write").mockImplementation((text) => written.push(text) > 0);
  const closing = new ClosingLine();
  closing.onTestResult({ path, context: { config } }, result);
  closing.onTestResult({ path: resolve(ROOT, CORE), context: { config } }, { testResults: [{ title: "is tested" }] });
  closing.onRunComplete([], { numPassedTests: 1, numFailedTests: 0, numPendingTests: 1, numRuntimeErrorTestSuites: 0 });
  write.mockRestore();
  expect(written.join("")).toBe(`\nNot started before the deadline:\n  ${FURTHER}\n\n1 passed, 0 failed, 1 skipped\n`);
});
