import type { Transport } from "@connectrpc/connect";
import type { Database } from "@millwright/database";
import { Cursors } from "@millwright/paging";
import type { ServiceOptions } from "@millwright/service";
import { deriveKeys, type MasterKeys } from "@millwright/vault";
import { factoriesClient } from "./clients/factories-client.ts";
import { launchCatalogClient } from "./clients/launch-catalog-client.ts";
import { sourceRunsClient } from "./clients/source-runs-client.ts";
import { suiteAgentsClient } from "./clients/suite-agents-client.ts";
import type { BenchmarkRoutesDeps } from "./rpc/benchmark-routes.ts";
import { benchmarkRunStore } from "./store/benchmark-run-store.ts";
import { benchmarkStatsStore } from "./store/benchmark-stats-store.ts";
import { launchStore } from "./store/launch-store.ts";
import { managedScorerStore } from "./store/managed-scorer-store.ts";
import { suiteStore } from "./store/suite-store.ts";
import { trialRecordStore } from "./store/trial-record-store.ts";

export type BenchmarksOptions = Pick<ServiceOptions, "clock" | "signer"> & {
  readonly masterKeys: MasterKeys;
  readonly database: Database;
  readonly upstreams: {
    readonly identity: Transport;
    readonly orchestrator: Transport;
    readonly factories: Transport;
  };
  readonly scorers: BenchmarkRoutesDeps["scorers"];
};

/** Composes the dependencies of the API of suites and benchmark runs. */
export function composeBenchmarks({
  database,
  clock,
  signer,
  masterKeys,
  upstreams,
  scorers,
}: BenchmarksOptions): BenchmarkRoutesDeps {
  const catalog = launchCatalogClient(upstreams.orchestrator, signer);
  return {
    clock,
    cursors: new Cursors(...deriveKeys(masterKeys, "benchmark page tokens")),
    factories: factoriesClient(upstreams.factories, signer),
    agents: suiteAgentsClient(upstreams.identity, signer),
    runs: sourceRunsClient(upstreams.orchestrator, signer),
    environments: catalog,
    catalog,
    suites: suiteStore(database),
    scorers,
    managedScorers: managedScorerStore(database),
    launches: launchStore(database),
    database,
    benchmarkRuns: benchmarkRunStore(database),
    benchmarkStats: benchmarkStatsStore(database),
    trials: trialRecordStore(database),
  };
}
