import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { events, webhooks } from "@millwright/contracts";
import { BackgroundLoop, Database } from "@millwright/database";
import { Consumer, EventLog, Relay, serveEventFeed } from "@millwright/events";
import { IdempotencyStore } from "@millwright/idempotency";
import { Cursors } from "@millwright/paging";
import { allowServices } from "@millwright/rpc";
import { upstreamFeed, watchService, type ServiceOptions } from "@millwright/service";
import { deriveKeys, Vault } from "@millwright/vault";
import { factoriesClient } from "./clients/factories-client.ts";
import { identityClient } from "./clients/identity-client.ts";
import { onFactoryEvents } from "./events/on-factory-events.ts";
import { ingressListener } from "./http/ingress-listener.ts";
import { DRAIN_MS } from "./http/read-body.ts";
import { Semaphore } from "./http/semaphore.ts";
import { TrustedProxies } from "./http/sender-address.ts";
import { codeHostAllowList, codeHostRoutes } from "./rpc/code-host-routes.ts";
import { definitionAllowList, definitionRoutes } from "./rpc/definition-routes.ts";
import { webhookRoutes, type RoutesDeps } from "./rpc/routes.ts";
import { codeHostDeliveryStore } from "./store/code-host-delivery-store.ts";
import { codeHostWebhookStore } from "./store/code-host-webhook-store.ts";
import { deliveryStore } from "./store/delivery-store.ts";
import { teamSecretStore } from "./store/team-secret-store.ts";
import { webhookStore } from "./store/webhook-store.ts";
import { TeamSecrets } from "./usecases/team-secrets.ts";

/** Applied by the process that starts the service, before the service is composed. */
export const migrationsDir: string = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

/** Which services may call in their own name. */
export const allowedServices = {
  ...allowServices(events.EventFeedService, { read: ["gateway", "factories", "metrics"] }),
  ...allowServices(webhooks.WebhookService, { getDelivery: ["factories"], updateManagedSecret: ["gateway"] }),
  ...codeHostAllowList,
  ...definitionAllowList,
};

const BODY_TIMEOUT_MS = 30_000;
/** Concurrent bodies of at most 25 MB each. */
const LARGE_BODIES_MAX = 8;
const PRUNE_EVERY_MS = 600_000;
const CONFIRM_EVERY_MS = 5_000;

export type WebhookIngressOptions = Omit<ServiceOptions, "verifier"> & {
  /** Origin of ingress URLs. */
  readonly webhookBase: string;
  readonly upstreams: { identity: Transport; factories: Transport };
  /** Addresses and networks whose `X-Forwarded-For` is trusted. Default: none. */
  readonly trustedProxies?: readonly string[];
  /** Default 30 s. */
  readonly bodyTimeoutMs?: number;
  /** How long the rest of a refused body is read after the response. Default 2 s. */
  readonly drainMs?: number;
  /** Large bodies of code hosts in memory at the same time. Default 8. */
  readonly largeBodiesMax?: number;
};

/** Builds the object graph of this service. */
export function composeWebhookIngress(o: WebhookIngressOptions) {
  const { clock, log, signer } = o;
  const database = Database.open(o.databaseUrl, { max: o.poolSize ?? 10, applicationName: "webhook-ingress" });
  const vault = Vault.fromMasterKeys(o);
  const eventLog = new EventLog({ database, clock, log, retentionDays: o.eventRetentionDays, wakeups: o.wakeups });
  const deliveries = deliveryStore(database, vault);
  const codeHostDeliveries = codeHostDeliveryStore(database, vault);
  const webhookRows = webhookStore(database, vault);
  const teamSecrets = new TeamSecrets({
    copies: teamSecretStore(database, vault),
    webhooks: webhookRows,
    identity: identityClient(o.upstreams.identity, signer),
    clock,
  });
  const deps: RoutesDeps = {
    webhooks: webhookRows,
    deliveries,
    factories: factoriesClient(o.upstreams.factories, signer),
    teamSecrets,
    cursors: new Cursors(...deriveKeys(o, "webhook-ingress page tokens")),
    webhookBase: o.webhookBase,
    clock,
  };
  const codeHosts = {
    codeHostWebhooks: codeHostWebhookStore(database, vault),
    codeHostDeliveries,
    cursors: deps.cursors,
    webhookBase: o.webhookBase,
    clock,
  };
  const factoryEvents = new Consumer({
    name: "webhooks",
    source: "factories",
    read: upstreamFeed(o.upstreams.factories, signer),
    database,
    clock,
    log,
    tracer: o.tracer,
    handlers: onFactoryEvents({ clock }),
    wakeups: o.wakeups,
  });
  const prune = async () => (await deliveries.prune(clock.now())) + (await codeHostDeliveries.prune(clock.now()));
  const loop = (component: string, everyMs: number, step: () => Promise<"again" | "idle">) =>
    new BackgroundLoop({
      everyMs,
      step,
      onError: (error) => log.warn({ component, error }, "background step failed; retrying"),
    });
  const loops = [
    loop("delivery pruner", PRUNE_EVERY_MS, () => prune().then(() => "idle" as const)),
    new IdempotencyStore().pruner({ sql: database.sql, clock, log }),
    loop("secret confirmation", CONFIRM_EVERY_MS, () => teamSecrets.confirm()),
  ];
  const relay = o.nats && new Relay({ eventLog, database, nats: o.nats, log });
  const unwatch = watchService({
    service: "webhook-ingress",
    metrics: o.metrics,
    database,
    consumers: [factoryEvents],
  });
  const pause = async (): Promise<void> =>
    void (await Promise.all([factoryEvents.stop(), ...loops.map((backgroundLoop) => backgroundLoop.stop())]));
  return {
    routes(router: ConnectRouter): void {
      webhookRoutes(router, deps);
      codeHostRoutes(router, codeHosts);
      definitionRoutes(router, { database, teamSecrets, clock });
      router.service(events.EventFeedService, serveEventFeed(eventLog));
    },
    /** Everything below `/webhooks/`. */
    requestListener: ingressListener({
      deliveries,
      codeHostDeliveries,
      clock,
      log,
      metrics: o.metrics,
      tracer: o.tracer,
      publicUrl: o.publicUrl,
      proxies: new TrustedProxies(o.trustedProxies ?? []),
      bodyTimeoutMs: o.bodyTimeoutMs ?? BODY_TIMEOUT_MS,
      drainMs: o.drainMs ?? DRAIN_MS,
      largeBodies: new Semaphore(o.largeBodiesMax ?? LARGE_BODIES_MAX),
    }),
    async start(): Promise<void> {
      eventLog.start();
      relay?.start();
      factoryEvents.start();
      for (const backgroundLoop of loops) backgroundLoop.start();
    },
    /** Stops the background work, above all calls to upstream services; requests are still served. Call it before `stop`. */
    pause,
    async stop(): Promise<void> {
      unwatch();
      await pause();
      await relay?.stop();
      await eventLog.stop();
      await database.close();
    },
    /** Returns whether the database responds. */
    ready: () => database.isReachable(),
    /** For tests, which run the background work step by step. */
    prune,
    confirmSecrets: () => teamSecrets.confirm(),
    factoryEvents,
  };
}

export type WebhookIngress = ReturnType<typeof composeWebhookIngress>;
