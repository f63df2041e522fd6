import { scoringMetrics } from "./scoring-metrics.ts";
import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { events } from "@millwright/contracts";
import { Database } from "@millwright/database";
import { Consumer, EventLog, Relay, serveEventFeed } from "@millwright/events";
import { allowServices } from "@millwright/rpc";
import { upstreamFeed, watchService, type ServiceOptions } from "@millwright/service";
import { WorkQueue } from "@millwright/work";
import { factoriesClient } from "./clients/factories-client.ts";
import { composeBenchmarkEngine } from "./compose-benchmark-engine.ts";
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

const TRIALS_PER_TEAM = 8;
/** Lease of a work item: after a process dies, another one can claim the item once this time has passed. */
const WORK_LEASE_SECONDS = 30;
const COOL_DOWN_MS = 30_000;
/** Handlers spend most of their time waiting for the orchestrator, so several items are processed concurrently. */
const WORK_CONCURRENCY = 8;

/** Builds the object graph of this service. */
export function composeScoring(o: ScoringOptions) {
  const { clock, log, signer, timeScale = 1 } = o;
  const { orchestrator } = o.upstreams;
  const database = Database.open(o.databaseUrl, { max: o.poolSize ?? 8, applicationName: "scoring" });
  const eventLog = new EventLog({ database, clock, log, retentionDays: o.eventRetentionDays, wakeups: o.wakeups });
  const factories = factoriesClient(o.upstreams.factories, signer);
  const base = { database, clock, log, signer, factories, orchestrator, timeScale };
  const judging = composeJudging({ ...base, coolDownMs: o.coolDownMs ?? COOL_DOWN_MS });
  const scorers = composeScorers({ ...base, masterKeys: o, identity: o.upstreams.identity });
  const benchmarkEngine = composeBenchmarkEngine({ ...base, trialsPerTeam: o.trialsPerTeam ?? TRIALS_PER_TEAM });
  const benchmarks = composeBenchmarks({
    ...base,
    masterKeys: o,
    upstreams: o.upstreams,
    scorers: scorers.routes.scorers,
  });
  const responsePruner = responses.pruner({ sql: database.sql, clock, log });
  const consuming = { database, clock, log, tracer: o.tracer, wakeups: o.wakeups };
  const runFeed = upstreamFeed(orchestrator, signer);
  const consumers = [
    new Consumer({ ...consuming, name: "scoring", source: "orchestrator", read: runFeed, ...judging.runEvents }),
    new Consumer({
      ...consuming,
      name: "trials",
      source: "orchestrator",
      read: ofTrialRuns(runFeed),
      handlers: {},
      batchHandlers: benchmarkEngine.runEvents,
    }),
    new Consumer({
      ...consuming,
      name: "scorers",
      source: "factories",
      read: upstreamFeed(o.upstreams.factories, signer),
      handlers: onFactoryEvents(),
    }),
  ];
  const work = new WorkQueue({
    database,
    clock,
    log,
    tracer: o.tracer,
    leaseSeconds: WORK_LEASE_SECONDS / timeScale,
    handlers: { ...judging.work, ...benchmarkEngine.handlers },
    concurrency: WORK_CONCURRENCY,
  });
  const stopCounting = scoringMetrics(o.metrics, database, clock);
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
    /** Starts self-improvement runs that are due; `start` repeats it. Returns their number. */
    decideImprovements: () => judging.decideImprovements(),
    /** Fails attempts whose work items exhausted their tries; `start` repeats it. Returns their number. */
    failAbandonedAttempts: () => judging.failAbandonedAttempts(),
    routes(router: ConnectRouter): void {
      scoringRoutes(router, { scorers: { ...scorers.routes, judging }, benchmarks });
      definitionRoutes(router, scorers.definitions);
      router.service(events.EventFeedService, serveEventFeed(eventLog));
    },
    async start(): Promise<void> {
      eventLog.start();
      relay?.start();
      work.start();
      judging.start();
      responsePruner.start();
      benchmarkEngine.start();
      for (const each of consumers) each.start();
    },
    /** Stops background work. RPCs are still served. Called before `stop`. */
    pause,
    async stop(): Promise<void> {
      unwatch();
      stopCounting();
      await pause();
      await relay?.stop();
      await eventLog.stop();
      await database.close();
    },
    /** Returns whether the database responds. */
    ready: () => database.isReachable(),
  };
}

export type Scoring = ReturnType<typeof composeScoring>;
