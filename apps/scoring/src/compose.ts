import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { events } from "@millwright/contracts";
import { Database } from "@millwright/database";
import {
  Consumer,
  EventLog,
  feedReader,
  Relay,
  serveEventFeed,
  type ConsumerDeps,
  type FeedReader,
} from "@millwright/events";
import { newUid } from "@millwright/ids";
import { allowServices, call, clientFor } from "@millwright/rpc";
import { watchService, type ServiceOptions } from "@millwright/service";
import { WorkQueue } from "@millwright/work";
import { factoriesClient } from "./clients/factories-client.ts";
import { composeBenchmarkEngine, type BenchmarkEngine } from "./compose-benchmark-engine.ts";
import { composeBenchmarks } from "./compose-benchmarks.ts";
import { composeJudging } from "./compose-judging.ts";
import { composeScorers } from "./compose-scorers.ts";
import { onFactoryEvents } from "./events/on-factory-events.ts";
import { ofTrialRuns } from "./events/on-trial-run-events.ts";
import { definitionAllowList, definitionRoutes } from "./rpc/definition-routes.ts";
import { scoringRoutes } from "./rpc/routes.ts";
import { responses } from "./store/idempotency.ts";

export { manifestHash, type Manifest } from "./domain/manifest.ts";

/** Directory of the migrations that are applied before the service is composed. */
export const migrationsDir: string = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

/** Services that may call each method in their own name. */
export const allowedServices = {
  ...allowServices(events.EventFeedService, { read: ["gateway"] }),
  ...definitionAllowList,
};

export type ScoringOptions = ServiceOptions & {
  readonly upstreams: { identity: Transport; orchestrator: Transport; factories: Transport };
  /** Time for which a run must have been terminal before it is scored automatically. Default: 30 s. */
  readonly coolDownMs?: number;
  /** Maximum number of concurrent trials of one team over all its benchmark runs. Default: 8. */
  readonly trialsPerTeam?: number;
  /** Divisor of every wait time, for failure tests. Default: 1. */
  readonly timeScale?: number;
};

export type Scoring = {
  routes(router: ConnectRouter): void;
  start(): Promise<void>;
  /** Stops background work. RPCs are still served. Called before `stop`. */
  pause(): Promise<void>;
  stop(): Promise<void>;
  /** Returns whether the database is reachable. */
  ready(): Promise<boolean>;
  readonly consumers: readonly Consumer[];
  readonly work: WorkQueue;
  readonly benchmarkEngine: BenchmarkEngine;
  /** Starts self-improvement runs that are due; `start` repeats it. Returns their number. */
  decideImprovements(): Promise<number>;
  /** Fails attempts whose work items exhausted their tries; `start` repeats it. Returns their number. */
  failAbandonedAttempts(): Promise<number>;
};

const TRIALS_PER_TEAM = 8;
/** Lease of a work item: after a process dies, another one can claim the item once this time has passed. */
const WORK_LEASE_SECONDS = 30;
const COOL_DOWN_MS = 30_000;
/** Handlers spend most of their time waiting for the orchestrator, so several items are processed concurrently. */
const WORK_CONCURRENCY = 8;

/** Builds the object graph of this service. */
export function composeScoring(o: ScoringOptions): Scoring {
  const { clock, log, signer } = o;
  const database = Database.open(o.databaseUrl, { max: o.poolSize ?? 8, applicationName: "scoring" });
  const wakeups = o.wakeups ? { wakeups: o.wakeups } : {};
  const eventLog = new EventLog({ database, clock, log, ...wakeups });
  const readFeed = (transport: Transport): FeedReader =>
    feedReader(clientFor(events.EventFeedService, transport, { signer }), () =>
      call(serviceCaller(signer.service, newUid())),
    );
  const consumer = (
    name: string,
    source: string,
    read: FeedReader,
    react: Pick<ConsumerDeps, "handlers" | "batchHandlers">,
  ) => new Consumer({ name, source, read, database, clock, log, tracer: o.tracer, ...react, ...wakeups });
  const factories = factoriesClient(o.upstreams.factories, signer);
  const responsePruner = responses.pruner({ sql: database.sql, clock, log });
  const judging = composeJudging({
    database,
    clock,
    log,
    signer,
    factories,
    orchestrator: o.upstreams.orchestrator,
    coolDownMs: o.coolDownMs ?? COOL_DOWN_MS,
    timeScale: o.timeScale ?? 1,
  });
  const scorers = composeScorers({
    database,
    clock,
    signer,
    masterKey: o.masterKey,
    factories,
    identity: o.upstreams.identity,
    orchestrator: o.upstreams.orchestrator,
  });
  const benchmarkEngine = composeBenchmarkEngine({
    database,
    clock,
    log,
    signer,
    orchestrator: o.upstreams.orchestrator,
    trialsPerTeam: o.trialsPerTeam ?? TRIALS_PER_TEAM,
    timeScale: o.timeScale ?? 1,
  });
  const benchmarks = composeBenchmarks({
    database,
    clock,
    signer,
    masterKey: o.masterKey,
    upstreams: o.upstreams,
    scorers: scorers.routes.scorers,
  });
  const consumers = [
    consumer("scoring", "orchestrator", readFeed(o.upstreams.orchestrator), judging.runEvents),
    consumer("trials", "orchestrator", ofTrialRuns(readFeed(o.upstreams.orchestrator)), {
      handlers: {},
      batchHandlers: benchmarkEngine.runEvents,
    }),
    consumer("scorers", "factories", readFeed(o.upstreams.factories), { handlers: onFactoryEvents() }),
  ];
  const work = new WorkQueue({
    database,
    clock,
    log,
    tracer: o.tracer,
    leaseSeconds: WORK_LEASE_SECONDS / (o.timeScale ?? 1),
    handlers: { ...judging.work, ...benchmarkEngine.handlers },
    concurrency: WORK_CONCURRENCY,
  });
  const unwatch = watchService({ service: "scoring", metrics: o.metrics, database, consumers, work });
  const relay = o.nats && new Relay({ eventLog, database, nats: o.nats, log });
  const pause = async (): Promise<void> =>
    void (await Promise.all([
      judging.stop(),
      responsePruner.stop(),
      benchmarkEngine.stop(),
      work.stop(),
      ...consumers.map((each) => each.stop()),
    ]));
  return {
    consumers,
    work,
    benchmarkEngine,
    decideImprovements: () => judging.decideImprovements(),
    failAbandonedAttempts: () => judging.failAbandonedAttempts(),
    routes(router) {
      scoringRoutes(router, { scorers: { ...scorers.routes, judging }, benchmarks });
      definitionRoutes(router, scorers.definitions);
      router.service(events.EventFeedService, serveEventFeed(eventLog));
    },
    async start() {
      eventLog.start();
      relay?.start();
      work.start();
      judging.start();
      responsePruner.start();
      benchmarkEngine.start();
      for (const each of consumers) each.start();
    },
    pause,
    async stop() {
      unwatch();
      await pause();
      await relay?.stop();
      await eventLog.stop();
      await database.close();
    },
    ready: () =>
      database.sql.query("SELECT 1").then(
        () => true,
        () => false,
      ),
  };
}
