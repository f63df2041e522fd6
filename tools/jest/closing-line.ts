// Prints the suites that the deadline left out, and one plain closing line with the numbers of passed, failed and
// skipped tests, which any CI can parse.
import type { AggregatedResult, AssertionResult } from "@jest/test-result";
import { LEFT_OUT, suiteOf } from "./suites.ts";

type Counts = Pick<
  AggregatedResult,
  "numPassedTests" | "numFailedTests" | "numPendingTests" | "numRuntimeErrorTestSuites"
>;

export default class ClosingLine {
  readonly #leftOut: string[] = [];

  onTestResult(
    { path, context }: { readonly path: string; readonly context: { readonly config: { readonly rootDir: string } } },
    { testResults }: { readonly testResults: readonly Pick<AssertionResult, "title">[] },
  ): void {
    if (testResults[0]?.title === LEFT_OUT) this.#leftOut.push(suiteOf(context.config, path));
  }

  onRunComplete(_contexts: unknown, results: Counts): void {
    const { numPassedTests, numFailedTests, numPendingTests, numRuntimeErrorTestSuites } = results;
    const failed = numFailedTests + numRuntimeErrorTestSuites;
    if (this.#leftOut.length > 0)
      process.stdout.write(
        `\nNot started before the deadline:\n${this.#leftOut.map((suite) => `  ${suite}\n`).join("")}`,
      );
    process.stdout.write(`\n${numPassedTests} passed, ${failed} failed, ${numPendingTests} skipped\n`);
  }
}
