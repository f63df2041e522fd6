import type { RequestListener } from "node:http";
import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import type { BlobStore } from "@millwright/blobs";
import { serviceCaller } from "@millwright/caller";
import { events, worker } from "@millwright/contracts";
import { Database } from "@millwright/database";
import {
  Consumer,
  EventLog,
  feedReader,
  Relay,
  type EventHandlers,
  type ReplicaNotifier,
  type ReplicaBroadcast,
} from "@millwright/events";
import { newUid } from "@millwright/ids";
import type { OutboundRule } from "@millwright/outbound";
import { Cursors } from "@millwright/paging";
import { call, clientFor, mountHttp1, type PublicKey, type ServerOptions } from "@millwright/rpc";
import { watchService, type ServiceOptions } from "@millwright/service";
import { deriveKeys, Vault } from "@millwright/vault";
import { WorkQueue } from "@millwright/work";
import { workerKeysClient } from "./leases/clients/worker-keys-client.ts";
import { catalogAllowList, composeCatalog } from "./compose-catalog.ts";
import { composeRuns } from "./compose-runs.ts";
import type { CapacityDefaults } from "./catalog/domain/queue-settings.ts";
import type { ManagedMcpServers } from "./catalog/domain/mcp-servers.ts";
import type { PlatformProvider } from "./catalog/domain/model-providers.ts";
import type { ModelAliases } from "./catalog/domain/models.ts";
import { scaleTimings } from "./runs/domain/timings.ts";
import { AGENT_DELETED, onAgentDeleted } from "./runs/events/on-agent-deleted.ts";
import { onFactoryQueueSettings, onIdentityQueueSettings } from "./leases/events/on-queue-settings.ts";
import { ALLOWED_SERVICES, routes } from "./rpc/routes.ts";
import { CANCEL_RUNS_OF_AGENT, type RunsOfAgent } from "./runs/usecases/cancel-runs-of-agent.ts";
import { runMetrics } from "./run-metrics.ts";
import { bearerOf, workerRoutes } from "./leases/rpc/worker-routes.ts";
import { mintRunToken, runTokenKeys } from "./leases/run-tokens.ts";

export type { FrozenMcpServer } from "./catalog/domain/mcp-servers.ts";
export { modelSettings, platformProviders } from "./catalog/model-settings.ts";

/** The directory of this service's migrations. The process that starts the service applies them first. */
export const migrationsDir: string = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

export type OrchestratorOptions = ServiceOptions & {
  /** Wakes waiting workers and readers at other replicas. Absent: there is only one replica. */
  readonly replicas?: ReplicaNotifier;
  /** Sends text deltas of models to readers at other replicas. */
  readonly liveTextBroadcast?: ReplicaBroadcast;
  readonly upstreams: { readonly identity: Transport; readonly factories: Transport };
  readonly blobs: BlobStore;
  /** Directories that may contain the local repositories of teams. */
  readonly localRepositoryRoots?: readonly string[];
  /** Model providers that every team may use, with the operator's keys. */
  readonly modelProviders?: readonly PlatformProvider[];
  /** Aliases of models. */
  readonly modelAliases?: ModelAliases;
  /** MCP servers that configurations may reference by id. */
  readonly managedMcpServers?: ManagedMcpServers;
  /** Maximum number of tokens of all model calls of one run. Default: 0 (no limit). */
  readonly runTokenLimit?: number;
  /** Divides every duration of leases, offers and heartbeats; for failure tests. */
  readonly timeScale?: number;
  /** Maximum number of concurrent executions of a team, agent or factory that has no limit of its own. */
  readonly capacityDefaults?: CapacityDefaults;
  /** For how many days the newest workspace of a conversation is retained for a follow-up. Default: 30. */
  readonly snapshotDays?: number;
  /** The hosts that may be reached at addresses set by teams. Default: public addresses only. */
  readonly outbound?: OutboundRule;
  /** Replaces the fetch for code hosts. */
  readonly fetch?: typeof fetch;
};

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
  const wakeups = o.wakeups ? { wakeups: o.wakeups } : {};
  const eventLog = new EventLog({ database, clock, log, retentionDays: o.eventRetentionDays, ...wakeups });
  const vault = Vault.fromMasterKeys(o);
  const tokens = await runTokenKeys(o);

  const counts = runMetrics(o.metrics, database, timings);
  const life = composeRuns({
    database,
    timings,
    log,
    ...(o.replicas ? { replicas: o.replicas } : {}),
    ...(o.liveTextBroadcast ? { liveTextBroadcast: o.liveTextBroadcast } : {}),
    capacityDefaults: o.capacityDefaults ?? CAPACITY_DEFAULTS,
    resolveRun: (caller, request) => catalog.resolveRun(caller, request),
    resolveQueueSettings: (caller, request) => catalog.resolveQueueSettings(caller, request),
    readBudgets: (runUid) => catalog.readBudgets(runUid),
    prepareAssignment: (job, session) => catalog.prepareAssignment(job, session),
    mintRunToken: (claims) => mintRunToken(tokens, claims),
    blobs,
    authenticateKey: workerKeysClient(o.upstreams.identity, signer),
    sealKey: (key) => vault.seal(key, "worker session"),
    openKey: (sealed) => vault.open(sealed, "worker session"),
    countModelCalls: (calls) => counts.modelCalls(calls),
  });
  const catalog = composeCatalog({
    database,
    blobs,
    clock,
    signer,
    timings,
    wakeups: life.wakeups,
    liveTexts: life.liveTexts,
    eventLog,
    cursors: new Cursors(...deriveKeys(o, "orchestrator page tokens")),
    identity: o.upstreams.identity,
    publicUrl: o.publicUrl,
    localRepositoryRoots: o.localRepositoryRoots ?? [],
    modelProviders: o.modelProviders ?? [],
    modelAliases: o.modelAliases ?? {},
    managedMcpServers: o.managedMcpServers ?? {},
    snapshotDays: o.snapshotDays ?? SNAPSHOT_DAYS,
    countUsage: (...usage) => counts.usage(...usage),
    ...(o.outbound ? { outbound: o.outbound } : {}),
    ...(o.fetch ? { fetch: o.fetch } : {}),
  });
  const artifactMethods = catalog.workerArtifactMethods((context) => life.worker.authenticate(bearerOf(context)));
  const work = new WorkQueue({
    database,
    clock,
    log,
    tracer: o.tracer,
    handlers: {
      ...catalog.workHandlers,
      [CANCEL_RUNS_OF_AGENT]: ({ payload }) => life.cancelRunsOfAgent(payload as RunsOfAgent),
    },
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
      read: feedReader(clientFor(events.EventFeedService, feed, { signer }), () =>
        call(serviceCaller(signer.service, newUid())),
      ),
      ...wakeups,
    });
  const consumers = [
    consumer("definitions", "factories", o.upstreams.factories, {
      ...catalog.eventHandlers,
      ...onFactoryQueueSettings(life),
    }),
    consumer("queue-settings", "gateway", o.upstreams.identity, {
      ...onIdentityQueueSettings(life),
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
    ...(o.tracer ? { tracer: o.tracer } : {}),
    quiet: QUIET_METHODS,
  };
  const toWorkers = (router: ConnectRouter) =>
    workerRoutes(router, {
      worker: life.worker,
      artifactMethods,
      timings,
      publicUrl: o.publicUrl,
      runTokenLimit: o.runTokenLimit ?? 0,
    });
  return {
    routes: (router) =>
      routes(router, {
        runs: { ...life, runMessages: (runs) => catalog.runMessages(runs) },
        runViewMethods: catalog.runViewMethods,
        conversationViewMethods: catalog.conversationViewMethods,
        catalogRoutes: (inner) => catalog.routes(inner),
        eventLog,
      }),
    allow: mergeAllowed(ALLOWED_SERVICES, catalogAllowList),
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
    ready: () =>
      database.sql.query("SELECT 1").then(
        () => true,
        () => false,
      ),
  };
}

type Allowed = Readonly<Record<string, readonly string[]>>;

const mergeAllowed = (first: Allowed, second: Allowed): Record<string, readonly string[]> =>
  Object.fromEntries(
    [...new Set([...Object.keys(first), ...Object.keys(second)])].map((method) => [
      method,
      [...(first[method] ?? []), ...(second[method] ?? [])],
    ]),
  );
