import type { RequestListener } from "node:http";
import { join } from "node:path";
import type { ConnectRouter } from "@connectrpc/connect";
import { directoryBlobs, openBucket } from "@millwright/blobs";
import { systemClock } from "@millwright/clock";
import { worker } from "@millwright/contracts";
import { localWakeupBus, NatsLink } from "@millwright/events";
import {
  allowedServices as factoriesAllow,
  composeFactories,
  migrationsDir as factoriesMigrations,
} from "@millwright/factories/compose";
import { composeGateway, migrationsDir as gatewayMigrations, signInOptions } from "@millwright/gateway/compose";
import {
  composeOrchestrator,
  migrationsDir as orchestratorMigrations,
  platformProviders,
} from "@millwright/orchestrator/compose";
import { outboundRule } from "@millwright/outbound";
import { CallerSigner, CallerVerifier, inProcess, localKeys, type Routes, type ServerOptions } from "@millwright/rpc";
import {
  allowedServices as schedulerAllow,
  composeScheduler,
  migrationsDir as schedulerMigrations,
} from "@millwright/scheduler/compose";
import {
  allowedServices as metricsAllow,
  composeMetrics,
  migrationsDir as metricsMigrations,
} from "@millwright/metrics/compose";
import {
  allowedServices as scoringAllow,
  composeScoring,
  migrationsDir as scoringMigrations,
} from "@millwright/scoring/compose";
import type { Logger, Metrics, Tracing } from "@millwright/telemetry";
import { deriveKeys, type MasterKeys } from "@millwright/vault";
import {
  allowedServices as webhooksAllow,
  composeWebhookIngress,
  migrationsDir as webhooksMigrations,
} from "@millwright/webhook-ingress/compose";
import type { StandaloneConfig } from "./config.ts";
import { POOL_SIZE, prepareDatabase, type Databases } from "./databases.ts";
import { deferredTransport } from "./deferred-transport.ts";

export type ServicesOptions = {
  config: StandaloneConfig;
  databases: Databases;
  masterKeys: MasterKeys;
  publicUrl: string;
  log: Logger;
  metrics: Metrics;
  tracing: Tracing;
};

/**
 * Routes of a service and the options of its server. Served in-process by standalone, and over HTTP/2 by separate
 * processes.
 */
export type RpcServer = { readonly routes: Routes; readonly options: ServerOptions };

export type Services = {
  /** Servers by service. `workers` is the orchestrator's server for workers. */
  readonly servers: Readonly<
    Record<
      "gateway" | "orchestrator" | "factories" | "scheduler" | "scoring" | "metrics" | "webhook-ingress" | "workers",
      RpcServer
    >
  >;
  /** Serves all public requests except `/healthz` and `/readyz`. */
  readonly requestListener: RequestListener;
  /** `apiKey` and `signInToken` are only set if this start created them. */
  readonly bootstrap: { readonly apiKey?: string; readonly signInToken?: string; readonly workerKey: string };
  start(): Promise<void>;
  stop(): Promise<void>;
  ready(): Promise<boolean>;
};

/**
 * Builds the object graph of the whole platform: each service is composed as in a process of its own, and connected by
 * in-process transports.
 */
export async function composeServices(options: ServicesOptions): Promise<Services> {
  const { config, databases, masterKeys, publicUrl, log, metrics, tracing } = options;
  const [gatewayUrl, orchestratorUrl, factoriesUrl, schedulerUrl, scoringUrl, metricsUrl, webhooksUrl] =
    await Promise.all([
      prepareDatabase(databases, "gateway", gatewayMigrations),
      prepareDatabase(databases, "orchestrator", orchestratorMigrations),
      prepareDatabase(databases, "factories", factoriesMigrations),
      prepareDatabase(databases, "scheduler", schedulerMigrations),
      prepareDatabase(databases, "scoring", scoringMigrations),
      prepareDatabase(databases, "metrics", metricsMigrations),
      prepareDatabase(databases, "webhook-ingress", webhooksMigrations),
    ]);
  const signers = {
    gateway: await CallerSigner.create("gateway"),
    orchestrator: await CallerSigner.create("orchestrator"),
    factories: await CallerSigner.create("factories"),
    scheduler: await CallerSigner.create("scheduler"),
    scoring: await CallerSigner.create("scoring"),
    metrics: await CallerSigner.create("metrics"),
    "webhook-ingress": await CallerSigner.create("webhook-ingress"),
  };
  const verifier = new CallerVerifier(Object.values(signers).map((signer) => signer.jwk));
  const transports = {
    identity: deferredTransport(),
    orchestrator: deferredTransport(),
    factories: deferredTransport(),
    scheduler: deferredTransport(),
    scoring: deferredTransport(),
    metrics: deferredTransport(),
    webhookIngress: deferredTransport(),
  };
  const [blobSigningKey, ...acceptedKeys] = deriveKeys(masterKeys, "blob urls");
  const blobs =
    config.blobUrl === undefined
      ? directoryBlobs({
          dir: join(config.dataDir, "blobs"),
          publicUrl,
          signingKey: blobSigningKey,
          clock: systemClock,
        })
      : openBucket(config.blobUrl, config, systemClock);
  const outbound = outboundRule(config.allowedInternalHosts);
  const nats = config.natsUrl === undefined ? undefined : NatsLink.open(config.natsUrl, "standalone", log);
  const shared = {
    ...(nats && { nats }),
    ...masterKeys,
    publicUrl,
    verifier,
    clock: systemClock,
    metrics,
    eventRetentionDays: config.eventRetentionDays,
    poolSize: POOL_SIZE,
    wakeups: localWakeupBus(),
  };
  const of = (service: keyof typeof signers) => ({
    ...shared,
    signer: signers[service],
    log: log.child({ service }),
    tracer: tracing.tracer(service),
  });

  const orchestrator = await composeOrchestrator({
    ...of("orchestrator"),
    databaseUrl: orchestratorUrl,
    upstreams: { identity: transports.identity, factories: transports.factories },
    blobs,
    outbound,
    localRepositoryRoots: config.localRepositoryRoots,
    timeScale: config.timeScale,
    snapshotDays: config.snapshotDays,
    runEventDays: config.runEventDays,
    artifactDays: config.artifactDays,
    modelProviders: platformProviders(config),
    modelAliases: config.modelAliases,
    runTokenLimit: config.runTokenLimit,
    managedMcpServers: config.managedMcpServers,
  });
  const factories = await composeFactories({
    ...of("factories"),
    databaseUrl: factoriesUrl,
    upstreams: {
      identity: transports.identity,
      orchestrator: transports.orchestrator,
      scheduler: transports.scheduler,
      scoring: transports.scoring,
      webhookIngress: transports.webhookIngress,
    },
    outbound,
    localRepositoryRoots: config.localRepositoryRoots,
    gitCaFile: config.gitCaFile,
    headPollMs: config.headPollMs / config.timeScale,
  });
  const scheduler = composeScheduler({
    ...of("scheduler"),
    databaseUrl: schedulerUrl,
    upstreams: {
      identity: transports.identity,
      orchestrator: transports.orchestrator,
      factories: transports.factories,
    },
    slotDays: config.slotDays,
    timeScale: config.timeScale,
  });
  const scoring = composeScoring({
    ...of("scoring"),
    databaseUrl: scoringUrl,
    upstreams: {
      identity: transports.identity,
      orchestrator: transports.orchestrator,
      factories: transports.factories,
    },
    coolDownMs: config.scoringCoolDownMs,
    trialsPerTeam: config.scoringTrialsPerTeam,
    timeScale: config.timeScale,
  });
  const metricsService = composeMetrics({
    ...of("metrics"),
    databaseUrl: metricsUrl,
    upstreams: {
      identity: transports.identity,
      orchestrator: transports.orchestrator,
      factories: transports.factories,
      webhookIngress: transports.webhookIngress,
    },
    timeScale: config.timeScale,
  });
  const webhooks = composeWebhookIngress({
    ...of("webhook-ingress"),
    databaseUrl: webhooksUrl,
    upstreams: { identity: transports.identity, factories: transports.factories },
    webhookBase: config.webhookUrl ?? publicUrl,
    trustedProxies: config.trustedProxies,
  });
  const gateway = await composeGateway({
    ...of("gateway"),
    databaseUrl: gatewayUrl,
    upstreams: {
      orchestrator: transports.orchestrator,
      factories: transports.factories,
      scheduler: transports.scheduler,
      scoring: transports.scoring,
      metrics: transports.metrics,
      webhookIngress: transports.webhookIngress,
    },
    webhookListener: webhooks.requestListener,
    ...(config.blobUrl === undefined && { blobs: { store: blobs, signingKey: blobSigningKey, acceptedKeys } }),
    ...(config.bootstrapApiKey !== undefined && { bootstrapApiKey: config.bootstrapApiKey }),
    egressRanges: config.egressRanges,
    auditRetentionDays: config.auditRetentionDays,
    ...signInOptions(config, publicUrl),
    publicMetrics: { metricsKey: config.metricsKey },
    workerListener: orchestrator.workerListener,
    runTokenKeys: localKeys(orchestrator.runTokenJwks),
  });
  const serving = (service: string, more: Partial<ServerOptions>): ServerOptions => ({
    service,
    verifier,
    log: log.child({ service }),
    metrics,
    tracer: tracing.tracer(service),
    ...more,
  });
  const servers = {
    gateway: { routes: gateway.routes, options: serving("gateway", { allow: gateway.allow }) },
    orchestrator: { routes: orchestrator.routes, options: serving("orchestrator", { allow: orchestrator.allow }) },
    factories: {
      routes: (router: ConnectRouter) => factories.routes(router),
      options: serving("factories", { allow: factoriesAllow }),
    },
    scheduler: {
      routes: (router: ConnectRouter) => scheduler.routes(router),
      options: serving("scheduler", { allow: schedulerAllow }),
    },
    scoring: {
      routes: (router: ConnectRouter) => scoring.routes(router),
      options: serving("scoring", { allow: scoringAllow }),
    },
    metrics: {
      routes: (router: ConnectRouter) => metricsService.routes(router),
      options: serving("metrics", { allow: metricsAllow }),
    },
    "webhook-ingress": {
      routes: (router: ConnectRouter) => webhooks.routes(router),
      options: serving("webhook-ingress", { allow: webhooksAllow }),
    },
    workers: {
      routes: orchestrator.workerRoutes,
      options: serving("orchestrator", { open: [worker.WorkerService.typeName] }),
    },
  };
  transports.identity.setTarget(inProcess(servers.gateway.routes, servers.gateway.options));
  transports.orchestrator.setTarget(inProcess(servers.orchestrator.routes, servers.orchestrator.options));
  transports.factories.setTarget(inProcess(servers.factories.routes, servers.factories.options));
  transports.scheduler.setTarget(inProcess(servers.scheduler.routes, servers.scheduler.options));
  transports.scoring.setTarget(inProcess(servers.scoring.routes, servers.scoring.options));
  transports.metrics.setTarget(inProcess(servers.metrics.routes, servers.metrics.options));
  transports.webhookIngress.setTarget(inProcess(servers["webhook-ingress"].routes, servers["webhook-ingress"].options));

  const inOrder = [gateway, orchestrator, factories, scheduler, scoring, webhooks, metricsService];
  const bootstrap = await gateway.bootstrap();
  return {
    servers,
    requestListener: gateway.requestListener,
    bootstrap,
    start: async () => {
      for (const service of inOrder) await service.start();
    },
    stop: async () => {
      // all are paused first, because they consume each other's events
      await Promise.all(inOrder.map((service) => service.pause()));
      for (const service of inOrder.toReversed()) await service.stop();
      await nats?.close();
    },
    ready: async () => (await Promise.all(inOrder.map((service) => service.ready()))).every(Boolean),
  };
}
