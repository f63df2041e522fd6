import type { Database } from "@millwright/database";
import { costBreakdownStore } from "./cost-breakdown-store.ts";
import { costliestStore } from "./costliest-store.ts";
import { pullRequestCostStore } from "./pull-request-cost-store.ts";

/** Returns the queries of cost endpoints. */
export const costAnswerStore = (database: Database) => ({
  costs: { ...costBreakdownStore(database), ...costliestStore(database), ...pullRequestCostStore(database) },
});
