// Runs a suite with jest-circus, or reports it as skipped if the deadline of the test run leaves it out.
import { createRequire } from "node:module";
import { type AssertionResult, createEmptyTestResult, type TestResult } from "@jest/test-result";
import { isLeftOut, LEFT_OUT, suiteOf } from "./suites.ts";

/** The interface between Jest and a test runner, which passes most arguments on. */
type Run = (
  globalConfig: unknown,
  config: { readonly rootDir: string },
  environment: unknown,
  runtime: unknown,
  path: string,
  sendMessage: unknown,
) => Promise<TestResult>;

const circus = createRequire(import.meta.url)("jest-circus/runner") as { readonly default: Run };

const runSuite: Run = async (globalConfig, config, environment, runtime, path, sendMessage) =>
  isLeftOut(suiteOf(config, path), Date.now())
    ? leftOut(path)
    : circus.default(globalConfig, config, environment, runtime, path, sendMessage);
export default runSuite;

/** Returns the result of a suite with one skipped test: Jest rejects a suite without tests. */
function leftOut(testFilePath: string): TestResult {
  const test: AssertionResult = {
    ancestorTitles: [],
    title: LEFT_OUT,
    fullName: LEFT_OUT,
    status: "pending",
    failureDetails: [],
    failureMessages: [],
    numPassingAsserts: 0,
  };
  return { ...createEmptyTestResult(), testFilePath, numPendingTests: 1, testResults: [test] };
}
