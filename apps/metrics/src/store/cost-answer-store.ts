import type { Database } from "@millwright/database";
import { costBreakdownStore } from "./cost-breakdown-store.ts";
import { costliestStore } from "./costliest-store.ts";
import { pullRequestCostStore } from "./pull-request-cost-store.ts";

/** What answers about costs are made of. */
export const costAnswerStore = (database: Database) => ({
  costs: { ...costBreakdownStore(database), ...costliestStore(database), ...pullRequestCostStore(database) },
});
