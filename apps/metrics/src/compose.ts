import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { Database } from "@millwright/database";
import type { Consumer } from "@millwright/events";
import { Cursors } from "@millwright/paging";
import { watchService, type ServiceOptions } from "@millwright/service";
import { deriveKey } from "@millwright/vault";
import type { WorkQueue } from "@millwright/work";
import { factoriesClient } from "./clients/factories-client.ts";
import { identityClient } from "./clients/identity-client.ts";
import { composeDeliveries } from "./compose-deliveries.ts";
import { composeIngestion } from "./compose-ingestion.ts";
import { composeReconciliation } from "./compose-reconciliation.ts";
import { freshnessOf } from "./freshness.ts";
import { metricsRoutes } from "./rpc/routes.ts";
import { responses } from "./store/idempotency.ts";
import { metricsQueries } from "./store/metrics-queries.ts";

export type { Activity, PullRequestFacts } from "./domain/pull-request-fact.ts";
export type { ModelCall, RunSnapshot } from "./domain/run-snapshot.ts";
export { urlKey } from "./domain/url-key.ts";
export { rebuildReadModels, type Rebuild } from "./usecases/rebuild-read-models.ts";
export { openHistoryImport, type HistoryImport } from "./history-import.ts";

/** Applied before the service is composed. */
export const migrationsDir: string = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

/** The services that may call as themselves. */
export const allowedServices: Readonly<Record<string, readonly string[]>> = {};

export type MetricsOptions = ServiceOptions & {
  readonly upstreams: {
    identity: Transport;
    orchestrator: Transport;
    factories: Transport;
    webhookIngress: Transport;
  };
  /** Divides every wait; for tests of failures. Default 1. */
  readonly timeScale?: number;
};

export type MetricsApp = {
  routes(router: ConnectRouter): void;
  start(): Promise<void>;
  /** Stops background work; RPCs are still served. Called before `stop`. */
  pause(): Promise<void>;
  stop(): Promise<void>;
  /** Returns whether the database is reachable. */
  ready(): Promise<boolean>;
  readonly consumers: readonly Consumer[];
  /** Reads the deliveries of code hosts, and replays facts for rebuilds. */
  readonly work: WorkQueue;
  /** Reads the facts of runs that are due. */
  refreshDue(): Promise<void>;
  /** Reads what is due from code hosts. */
  reconcileDue(): Promise<void>;
};

/** The object graph of this service. */
export function composeMetrics(o: MetricsOptions): MetricsApp {
  const { clock, log, signer } = o;
  const database = Database.open(o.databaseUrl, { max: o.poolSize ?? 8, applicationName: "metrics" });
  const { tracer, wakeups, upstreams, timeScale = 1 } = o;
  const ingestion = composeIngestion({ database, clock, log, signer, upstreams, timeScale, tracer, wakeups });
  const { replayedRuns } = ingestion;
  const deliveries = composeDeliveries({
    database,
    clock,
    log,
    signer,
    upstreams,
    timeScale,
    tracer,
    wakeups,
    replayedRuns,
  });
  const reconciliation = composeReconciliation({
    database,
    clock,
    log,
    signer,
    upstreams,
    timeScale,
    metrics: o.metrics,
  });
  const responsePruner = responses.pruner({ sql: database.sql, clock, log });
  const { work } = deliveries;
  const feeds = [ingestion.followed, deliveries.followed];
  const consumers = feeds.map(({ consumer }) => consumer);
  const unwatch = watchService({ service: "metrics", metrics: o.metrics, database, consumers, work });
  const pause = async (): Promise<void> =>
    void (await Promise.all([
      ingestion.stop(),
      reconciliation.stop(),
      responsePruner.stop(),
      work.stop(),
      ...consumers.map((each) => each.stop()),
    ]));
  return {
    consumers,
    work,
    refreshDue: () => ingestion.refreshDue(),
    reconcileDue: () => reconciliation.reconcileDue(),
    routes: (router) =>
      metricsRoutes(router, {
        clock,
        database,
        factories: factoriesClient(upstreams.factories, signer),
        principals: identityClient(upstreams.identity, signer, log),
        asOf: freshnessOf(database, clock, feeds),
        ...metricsQueries(database),
        cursors: new Cursors(deriveKey(o.masterKey, "metrics page tokens")),
      }),
    async start() {
      ingestion.start();
      reconciliation.start();
      responsePruner.start();
      work.start();
      for (const each of consumers) each.start();
    },
    pause,
    async stop() {
      unwatch();
      await pause();
      reconciliation.close();
      await database.close();
    },
    ready: () =>
      database.sql.query("SELECT 1").then(
        () => true,
        () => false,
      ),
  };
}
