import type { Database } from "@millwright/database";
import { mergeStore } from "./merge-store.ts";
import { pullRequestCohortStore } from "./pull-request-cohort-store.ts";
import { runCountStore } from "./run-count-store.ts";

/** Returns the queries of metrics and run counts. */
export const runAnswerStore = ({ searches }: Database) => ({
  runCounts: runCountStore(searches),
  pullRequestCohorts: pullRequestCohortStore(searches),
  merges: mergeStore(searches),
});
