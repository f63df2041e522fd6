import { freshnessMetrics } from "./freshness-metrics.ts";
import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { Database } from "@millwright/database";
import { Cursors } from "@millwright/paging";
import { watchService, type ServiceOptions } from "@millwright/service";
import { deriveKeys } from "@millwright/vault";
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

/** The object graph of this service. */
export function composeMetrics(o: MetricsOptions) {
  const { clock, log, signer } = o;
  const database = Database.open(o.databaseUrl, { max: o.poolSize ?? 8, applicationName: "metrics" });
  const { metrics, tracer, wakeups, upstreams, timeScale = 1 } = o;
  const base = { database, clock, log, signer, metrics, tracer, wakeups, upstreams, timeScale };
  const ingestion = composeIngestion(base);
  const deliveries = composeDeliveries({ ...base, replayedRuns: ingestion.replayedRuns });
  const reconciliation = composeReconciliation(base);
  const responsePruner = responses.pruner({ sql: database.sql, clock, log });
  const { work } = deliveries;
  const feeds = [ingestion.consumedFeed, deliveries.consumedFeed];
  const consumers = feeds.map(({ consumer }) => consumer);
  const stopCounting = freshnessMetrics(metrics, database, clock);
  const unwatch = watchService({ service: "metrics", metrics, database, consumers, work });
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
    routes: (router: ConnectRouter): void =>
      metricsRoutes(router, {
        clock,
        database,
        factories: factoriesClient(upstreams.factories, signer),
        principals: identityClient(upstreams.identity, signer, log),
        asOf: freshnessOf(database, clock, feeds),
        ...metricsQueries(database),
        cursors: new Cursors(...deriveKeys(o, "metrics page tokens")),
      }),
    async start(): Promise<void> {
      ingestion.start();
      reconciliation.start();
      responsePruner.start();
      work.start();
      for (const each of consumers) each.start();
    },
    /** Stops background work; RPCs are still served. Called before `stop`. */
    pause,
    async stop(): Promise<void> {
      unwatch();
      stopCounting();
      await pause();
      reconciliation.close();
      await database.close();
    },
    /** Returns whether the database responds. */
    ready: () => database.isReachable(),
  };
}

export type MetricsApp = ReturnType<typeof composeMetrics>;
