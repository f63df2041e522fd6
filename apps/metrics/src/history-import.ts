import { Database } from "@millwright/database";
import type { PullRequestFacts } from "./domain/pull-request-fact.ts";
import type { RunSnapshot } from "./domain/run-snapshot.ts";
import { lockFactories } from "./store/factory-lock.ts";
import { pullRequestFactStore } from "./store/pull-request-fact-store.ts";
import { storeSnapshots } from "./usecases/store-snapshots.ts";

const BATCH = 200;

/** Facts for the database of the metrics service, stored in the way in which the service stores what it reads. */
export type HistoryImport = {
  storeRuns(runs: readonly RunSnapshot[]): Promise<void>;
  storePullRequests(teamUid: string, facts: readonly PullRequestFacts[]): Promise<void>;
  close(): Promise<void>;
};

/** Opens the database of the metrics service, which the service has migrated. */
export function openHistoryImport(databaseUrl: string): HistoryImport {
  const database = Database.open(databaseUrl, { max: 1, applicationName: "history import" });
  const pullRequests = pullRequestFactStore(database);
  return {
    async storeRuns(runs) {
      for (let first = 0; first < runs.length; first += BATCH) {
        const batch = runs.slice(first, first + BATCH);
        await database.transaction(async (tx) => {
          await lockFactories(
            tx,
            batch.map(({ costOwner }) => costOwner.factoryUid),
          );
          await storeSnapshots(tx, batch);
        });
      }
    },
    async storePullRequests(teamUid, facts) {
      const reported = facts.map((each) => ({ teamUid, facts: each }));
      for (let first = 0; first < reported.length; first += BATCH)
        await pullRequests.record(reported.slice(first, first + BATCH), async () => {});
    },
    close: () => database.close(),
  };
}
