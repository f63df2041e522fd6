import type { Transport } from "@connectrpc/connect";
import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { Cursors } from "@millwright/paging";
import type { CallerSigner } from "@millwright/rpc";
import { deriveKey } from "@millwright/vault";
import { factoriesClient } from "./clients/factories-client.ts";
import { launchCatalogClient } from "./clients/launch-catalog-client.ts";
import { sourceRunsClient } from "./clients/source-runs-client.ts";
import { suiteAgentsClient } from "./clients/suite-agents-client.ts";
import type { BenchmarkRoutesDeps } from "./rpc/benchmark-routes.ts";
import { findBenchmarkRunRow } from "./store/benchmark-run-rows.ts";
import { benchmarkStatsStore } from "./store/benchmark-stats-store.ts";
import { suiteStore } from "./store/suite-store.ts";
import { trialRecordStore } from "./store/trial-record-store.ts";

export type BenchmarksOptions = {
  readonly database: Database;
  readonly clock: Clock;
  readonly signer: CallerSigner;
  readonly masterKey: Uint8Array;
  readonly neighbours: { readonly identity: Transport; readonly orchestrator: Transport; readonly factories: Transport };
};

/** What serves the requests about suites and benchmark runs. */
export function composeBenchmarks({ database, clock, signer, masterKey, neighbours }: BenchmarksOptions): BenchmarkRoutesDeps {
  return {
    clock,
    cursors: new Cursors(deriveKey(masterKey, "benchmark page tokens")),
    factories: factoriesClient(neighbours.factories, signer),
    agents: suiteAgentsClient(neighbours.identity, signer),
    runs: sourceRunsClient(neighbours.orchestrator, signer),
    environments: launchCatalogClient(neighbours.orchestrator, signer),
    suites: suiteStore(database),
    benchmarkRuns: { find: (uid) => findBenchmarkRunRow(database.sql, uid) },
    benchmarkStats: benchmarkStatsStore(database),
    trials: trialRecordStore(database),
  };
}
