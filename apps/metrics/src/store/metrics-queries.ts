import type { Database } from "@millwright/database";
import { costBreakdownStore } from "./cost-breakdown-store.ts";
import { costliestStore } from "./costliest-store.ts";
import { mergeStore } from "./merge-store.ts";
import { pullRequestCohortStore } from "./pull-request-cohort-store.ts";
import { pullRequestCostStore } from "./pull-request-cost-store.ts";
import { pullRequestListStore } from "./pull-request-list-store.ts";
import { runCountStore } from "./run-count-store.ts";

/** Returns the queries of all endpoints. */
export const metricsQueries = (database: Database) => ({
  runCounts: runCountStore(database.searches),
  pullRequestCohorts: pullRequestCohortStore(database.searches),
  merges: mergeStore(database.searches),
  costs: { ...costBreakdownStore(database), ...costliestStore(database), ...pullRequestCostStore(database) },
  pullRequests: pullRequestListStore(database),
});

export type MetricsQueries = ReturnType<typeof metricsQueries>;
