// The order in which test suites start, and which suites a deadline may leave out.
import { relative } from "node:path";

/**
 * The suites that start first: the longest ones, because they would otherwise run last while the other Jest worker is
 * idle, and the system tests that run with every change. The drill is first, concurrent with suites that start no
 * platform: its leases are short, and a busy machine slows it down.
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
  "apps/worker/test/sandbox-escapes.test.ts",
  "apps/system-tests/test/cluster.test.ts",
  "apps/system-tests/test/demo.test.ts",
  "apps/system-tests/test/probers.test.ts",
  "apps/system-tests/test/benchmarks.test.ts",
  "apps/system-tests/test/automations.test.ts",
  "apps/system-tests/test/failure-matrix.test.ts",
  "apps/system-tests/test/journey.test.ts",
  "apps/system-tests/test/tasks.test.ts",
  "apps/system-tests/test/code-hosts.test.ts",
  "apps/system-tests/test/published-client.test.ts",
  "apps/system-tests/test/states.test.ts",
  "apps/system-tests/test/nats.test.ts",
  "apps/system-tests/test/console/runs.test.ts",
];

/** The tests of the previous release on the schema of this version. */
const PREVIOUS_RELEASE = "tools/deploy/previous-release.test.ts";

/** Title of the skipped test of a suite that was left out. */
export const LEFT_OUT = "has not started before the deadline of the test run";

/** Returns the path of a suite relative to the root of the repository. */
export const suiteOf = ({ rootDir }: { readonly rootDir: string }, path: string): string => relative(rootDir, path);

/** Returns the group of a suite: groups start in ascending order. */
export function rankOf(suite: string): number {
  const rank = FIRST.indexOf(suite);
  if (rank !== -1) return rank;
  if (!isOptional(suite)) return FIRST.length;
  return suite === PREVIOUS_RELEASE ? FIRST.length + 1 : FIRST.length + 2;
}

/** Returns whether a suite is left out if it has not started when the deadline of the test run is over. */
export const isOptional = (suite: string): boolean =>
  suite === PREVIOUS_RELEASE || (suite.startsWith("apps/system-tests/") && !FIRST.includes(suite));

/**
 * Returns whether a suite is left out at `now` (milliseconds since the epoch) because of `MILLWRIGHT_TEST_DEADLINE`
 * (seconds since the epoch; default: none).
 */
export function isLeftOut(suite: string, now: number, deadline = process.env["MILLWRIGHT_TEST_DEADLINE"]): boolean {
  if (!deadline) return false;
  if (!/^\d+$/.test(deadline))
    throw new Error(`MILLWRIGHT_TEST_DEADLINE is a time in seconds since the epoch (got ${JSON.stringify(deadline)}).`);
  return isOptional(suite) && now >= Number(deadline) * 1_000;
}
