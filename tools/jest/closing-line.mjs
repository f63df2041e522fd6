// Prints one plain closing line with the numbers of passed, failed and skipped tests, which any CI can parse.
export default class ClosingLine {
  onRunComplete(_contexts, results) {
    const { numPassedTests, numFailedTests, numPendingTests, numRuntimeErrorTestSuites } = results;
    const failed = numFailedTests + numRuntimeErrorTestSuites;
    process.stdout.write(`\n${numPassedTests} passed, ${failed} failed, ${numPendingTests} skipped\n`);
  }
}
