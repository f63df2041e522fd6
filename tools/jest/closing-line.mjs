// Prints one plain closing line that any CI can read, and names every skipped test's reason-bearing title.
export default class ClosingLine {
  onRunComplete(_contexts, results) {
    const { numPassedTests, numFailedTests, numPendingTests, numRuntimeErrorTestSuites } = results;
    const failed = numFailedTests + numRuntimeErrorTestSuites;
    process.stdout.write(`\n${numPassedTests} passed, ${failed} failed, ${numPendingTests} skipped\n`);
  }
}
