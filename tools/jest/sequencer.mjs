// Starts long suites first, so that the Jest workers finish at about the same time. A clean clone has no durations of
// an earlier run, and Jest would sort by file size: the longest suites, which are short files, would run last while the
// other workers are idle.
import { relative } from "node:path";
import TestSequencer from "@jest/test-sequencer";

/**
 * Suites in the order in which they start. The drill is first, concurrent with suites that start no platform: its
 * leases are short, and a busy machine slows it down.
 */
const FIRST = [
  "apps/system-tests/test/drill.test.ts",
  "tools/database/drift.test.ts",
  "apps/orchestrator/test/claims.test.ts",
  "apps/orchestrator/test/simulation/follow-up-races.test.ts",
  "apps/orchestrator/test/run-list-plans.test.ts",
  "apps/orchestrator/test/resolve-run.test.ts",
  "apps/orchestrator/test/catalog.test.ts",
  "apps/orchestrator/test/list-runs.test.ts",
  "apps/system-tests/test/cluster.test.ts",
  "apps/system-tests/test/backup.test.ts",
  "apps/system-tests/test/demo.test.ts",
  "apps/system-tests/test/canary.test.ts",
  "apps/system-tests/test/delivery-chaos.test.ts",
  "apps/system-tests/test/probers.test.ts",
  "apps/system-tests/test/benchmarks.test.ts",
  "apps/system-tests/test/benchmark-demo.test.ts",
];

export default class LongestFirst extends TestSequencer {
  /**
   * Returns Jest's own order if it knows the duration of every suite; otherwise `FIRST`, then the system tests, then
   * the other suites.
   */
  sort(tests) {
    const sorted = super.sort(tests);
    if (tests.every(({ duration }) => duration !== undefined)) return sorted;
    return sorted.toSorted((a, b) => rankOf(a) - rankOf(b));
  }
}

function rankOf({ path, context }) {
  const suite = relative(context.config.rootDir, path);
  const rank = FIRST.indexOf(suite);
  if (rank !== -1) return rank;
  return suite.startsWith("apps/system-tests/") ? FIRST.length : FIRST.length + 1;
}
