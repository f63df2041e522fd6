import type { RequestListener } from "node:http";
import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { worker } from "@millwright/contracts";
import { Database } from "@millwright/database";
import { Consumer, EventLog, Relay, type EventHandlers } from "@millwright/events";
import { Cursors } from "@millwright/paging";
import { mountHttp1, type PublicKey, type ServerOptions } from "@millwright/rpc";
import { upstreamFeed, watchService } from "@millwright/service";
import { deriveKeys, Vault } from "@millwright/vault";
import { WorkQueue } from "@millwright/work";
import { workerKeysClient } from "./leases/clients/worker-keys-client.ts";
import { composeCatalog } from "./compose-catalog.ts";
import { composeRuns } from "./compose-runs.ts";
import type { OrchestratorOptions } from "./options.ts";
import { scaleTimings } from "./runs/domain/timings.ts";
import { AGENT_DELETED, onAgentDeleted } from "./runs/events/on-agent-deleted.ts";
import { onFactoryQueueSettings, onIdentityQueueSettings } from "./leases/events/on-queue-settings.ts";
import { ALLOWED_SERVICES, routes, workerRoutes } from "./rpc/routes.ts";
import { CANCEL_RUNS_OF_AGENT, cancelRunsOfAgent, type RunsOfAgent } from "./runs/usecases/cancel-runs-of-agent.ts";
import { runMetrics } from "./run-metrics.ts";
import { mintRunToken, runTokenKeys } from "./leases/run-tokens.ts";

export type { OrchestratorOptions } from "./options.ts";
export type { FrozenMcpServer } from "./catalog/domain/mcp-servers.ts";
export { modelSettings, platformProviders } from "./catalog/model-settings.ts";
export { openRunImport, type ImportedRun, type RunImport } from "./run-import.ts";

/** The directory of this service's migrations. The process that starts the service applies them first. */
export const migrationsDir: string = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

export type Orchestrator = {
  readonly routes: (router: ConnectRouter) => void;
  readonly allow: NonNullable<ServerOptions["allow"]>;
  /** Handles WorkerService over HTTP/1.1, for requests below `/rpc`. */
  readonly workerListener: RequestListener;
  /** Registers WorkerService, for a server that accepts requests without a caller token. */
  readonly workerRoutes: (router: ConnectRouter) => void;
  /** The public key that verifies run tokens. */
  readonly runTokenJwks: readonly PublicKey[];
  start(): Promise<void>;
  /**
   * Stops the consumers and the work queue, which are what call upstream services on their own. The service still
   * serves requests. Call before `stop`.
   */
  pause(): Promise<void>;
  stop(): Promise<void>;
  ready(): Promise<boolean>;
};

/** Methods that workers call continuously. */
export const QUIET_METHODS: readonly string[] = (
  ["heartbeat", "lease", "appendEvents", "publishTextDelta", "subscribe"] as const
).map((name) => `${worker.WorkerService.typeName}/${worker.WorkerService.method[name].name}`);

/** The path prefix of WorkerService on the public port. */
const WORKER_PATH = "/rpc";

const SNAPSHOT_DAYS = 30;
const CAPACITY_DEFAULTS = { team: 100, agent: 100, factory: 100 };

/** Composes the object graph of this service. */
export async function composeOrchestrator(o: OrchestratorOptions): Promise<Orchestrator> {
  const { clock, log, signer, blobs } = o;
  const timings = scaleTimings(o.timeScale ?? 1);
  const database = Database.open(o.databaseUrl, { max: o.poolSize ?? 10, applicationName: "orchestrator" });
  const eventLog = new EventLog({ database, clock, log, retentionDays: o.eventRetentionDays, wakeups: o.wakeups });
  const vault = Vault.fromMasterKeys(o);
  const tokens = await runTokenKeys(o);

  const counts = runMetrics(o.metrics, database, timings);
  const life = composeRuns({
    database,
    blobs,
    clock,
    timings,
    log,
    replicas: o.replicas,
    liveTextBroadcast: o.liveTextBroadcast,
    capacityDefaults: o.capacityDefaults ?? CAPACITY_DEFAULTS,
    resolveRun: (...args) => catalog.resolveRun(...args),
    resolveQueueSettings: (caller, request) => catalog.resolveQueueSettings(caller, request),
    prepareAssignment: (job, session) => catalog.prepareAssignment(job, session),
    mintRunToken: (claims) => mintRunToken(tokens, claims),
    authenticateKey: workerKeysClient(o.upstreams.identity, signer),
    sealKey: (key) => vault.seal(key, "worker session"),
    openKey: (sealed) => vault.open(sealed, "worker session"),
    countModelCalls: (calls) => counts.modelCalls(calls),
  });
  const catalog = composeCatalog({
    database,
    runs: life.deps,
    blobs,
    clock,
    signer,
    eventLog,
    cursors: new Cursors(...deriveKeys(o, "orchestrator page tokens")),
    identity: o.upstreams.identity,
    publicUrl: o.publicUrl,
    localRepositoryRoots: o.localRepositoryRoots ?? [],
    modelProviders: o.modelProviders ?? [],
    modelAliases: o.modelAliases ?? {},
    managedMcpServers: o.managedMcpServers ?? {},
    snapshotDays: o.snapshotDays ?? SNAPSHOT_DAYS,
    runEventDays: o.runEventDays ?? 0,
    artifactDays: o.artifactDays ?? 0,
    runTokenLimit: o.runTokenLimit ?? 0,
    countUsage: (...usage) => counts.usage(...usage),
    outbound: o.outbound,
    fetch: o.fetch,
  });
  const { deps } = catalog;
  const work = new WorkQueue({
    database,
    clock,
    log,
    tracer: o.tracer,
    handlers: {
      ...catalog.workHandlers,
      [CANCEL_RUNS_OF_AGENT]: ({ payload }) => cancelRunsOfAgent(deps, payload as RunsOfAgent),
    },
    batches: catalog.workBatches,
  });
  const consumer = (name: string, source: string, feed: Transport, handlers: EventHandlers) =>
    new Consumer({
      name,
      source,
      database,
      clock,
      log,
      tracer: o.tracer,
      handlers,
      read: upstreamFeed(feed, signer),
      wakeups: o.wakeups,
    });
  const consumers = [
    consumer("definitions", "factories", o.upstreams.factories, {
      ...catalog.eventHandlers,
      ...onFactoryQueueSettings(deps),
    }),
    consumer("queue-settings", "gateway", o.upstreams.identity, {
      ...onIdentityQueueSettings(deps),
      [AGENT_DELETED]: onAgentDeleted,
    }),
  ];

  const unwatch = watchService({ service: "orchestrator", metrics: o.metrics, database, consumers, work });
  const pause = async (): Promise<void> =>
    void (await Promise.all([...consumers.map((each) => each.stop()), work.stop()]));
  const relay = o.nats && new Relay({ eventLog, database, nats: o.nats, log });

  // Workers authenticate with a worker key or a session token, so this server requires no caller token.
  const workerServer: ServerOptions = {
    service: "orchestrator",
    verifier: { authenticate: async () => undefined },
    log,
    metrics: o.metrics,
    tracer: o.tracer,
    quiet: QUIET_METHODS,
  };
  const toWorkers = (router: ConnectRouter) => workerRoutes(router, deps);
  return {
    routes: (router) => routes(router, deps),
    allow: ALLOWED_SERVICES,
    workerRoutes: toWorkers,
    workerListener: mountHttp1(toWorkers, workerServer, WORKER_PATH),
    runTokenJwks: tokens.jwks,
    async start() {
      eventLog.start();
      relay?.start();
      life.start();
      await catalog.planSweep();
      work.start();
      for (const each of consumers) each.start();
    },
    pause,
    async stop() {
      unwatch();
      counts.stop();
      await pause();
      await life.stop();
      await relay?.stop();
      await eventLog.stop();
      await catalog.stop();
      await database.close();
    },
    ready: () => database.isReachable(),
  };
}
