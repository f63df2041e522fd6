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

/** Applied before the service is composed. */
export const migrationsDir: string = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

/** Which services may call in their own name. */
export const allowedServices = {
  ...allowServices(events.EventFeedService, { read: ["gateway"] }),
  ...definitionAllowList,
};

export type ScoringOptions = ServiceOptions & {
  readonly upstreams: { identity: Transport; orchestrator: Transport; factories: Transport };
  /** How long a run must have been terminal before it is scored automatically; 30 s by default. */
  readonly coolDownMs?: number;
  /** Trials of one team that run at once, over all its benchmark runs; 8 by default. */
  readonly trialsPerTeam?: number;
  /** Divides every wait; for tests of failures. Default 1. */
  readonly timeScale?: number;
};

export type Scoring = {
  routes(router: ConnectRouter): void;
  start(): Promise<void>;
  /** Stops background work; RPCs are still served. Called before `stop`. */
  pause(): Promise<void>;
  stop(): Promise<void>;
  /** Whether the database answers. */
  ready(): Promise<boolean>;
  readonly consumers: readonly Consumer[];
  readonly work: WorkQueue;
  readonly benchmarkEngine: BenchmarkEngine;
  /** Decides for self-improvement runs; `start` has it repeated. Returns how many. */
  decideImprovements(): Promise<number>;
  /** Fails attempts whose work the queue has given up; `start` has it repeated. Returns how many. */
  failAbandonedAttempts(): Promise<number>;
};

const TRIALS_PER_TEAM = 8;
/** How long an item of work stays claimed by a process that died. */
const WORK_LEASE_SECONDS = 30;
const COOL_DOWN_MS = 30_000;
/** Items mostly wait for the orchestrator. */
const WORK_CONCURRENCY = 8;

/** The object graph of this service. */
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
