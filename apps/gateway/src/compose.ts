import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { BackgroundLoop, Database } from "@millwright/database";
import { Consumer, Relay, type ConsumerDeps, type FeedReader } from "@millwright/events";
import { Cursors } from "@millwright/paging";
import type { ServerOptions } from "@millwright/rpc";
import { upstreamFeed, watchService } from "@millwright/service";
import { deriveKeys, Vault } from "@millwright/vault";
import { connectUpstreams } from "./clients/upstreams.ts";
import { onAuditedEvents } from "./events/on-audited-events.ts";
import type { GatewayOptions } from "./options.ts";
import { publicApp } from "./public-app.ts";
import type { OpenApiDocument } from "./rest/openapi.ts";
import type { RequestListener } from "./rest/index.ts";
import { pruneAudit } from "./store/audit-store.ts";
import { createOnce, findCreated, openResponses, respondOnce } from "./store/idempotency-store.ts";
import { pruneMetricsRequests } from "./store/metrics-request-store.ts";
import { composeIdentity, type Bootstrap } from "./identity/index.ts";
import { limitMetricsRequests } from "./usecases/limit-metrics-requests.ts";

export { chosenKey, createOwnerKey } from "./identity/index.ts";
export { signInOptions } from "./sign-in-settings.ts";

/** Directory of this service's migrations, which must be applied before the service starts. */
export const migrationsDir: string = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

export type Gateway = {
  readonly routes: (router: ConnectRouter) => void;
  readonly allow: NonNullable<ServerOptions["allow"]>;
  readonly requestListener: RequestListener;
  readonly openApi: OpenApiDocument;
  /** Creates the initial records of a new platform. On later starts, it only returns the worker key. */
  bootstrap(): Promise<Bootstrap>;
  start(): Promise<void>;
  /**
   * Stops background work, in particular calls to upstream services. Requests are still served. Called before `stop`.
   */
  pause(): Promise<void>;
  stop(): Promise<void>;
  ready(): Promise<boolean>;
};

const PRUNE_COUNTS_EVERY_MS = 60_000;
const PRUNE_AUDIT_EVERY_MS = 3_600_000;

export async function composeGateway(o: GatewayOptions): Promise<Gateway> {
  const { clock, log } = o;
  const database = Database.open(o.databaseUrl, {
    applicationName: "gateway",
    ...(o.poolSize ? { max: o.poolSize } : {}),
  });
  const identity = composeIdentity({ ...o, database });
  const { eventLog } = identity;
  const vault = Vault.fromMasterKeys(o);
  const responses = openResponses(vault);
  const upstreams = connectUpstreams(o.upstreams, o.signer);
  const limitMetrics = limitMetricsRequests({ sql: database.sql, clock });
  const app = publicApp({
    options: o,
    authenticate: (credential) => identity.authenticator.authenticate(credential),
    identity: identity.operations,
    sessions: identity.sessions,
    signInLinks: identity.signInLinks,
    providerSignIn: identity.providerSignIn,
    sql: database.sql,
    vault,
    cursors: new Cursors(...deriveKeys(o, "cursors")),
    createOnce: createOnce({ transaction: identity.operations.transaction, responses, clock }),
    findCreated: findCreated({ sql: database.sql, responses, clock }),
    upstreams,
    respondOnce: respondOnce({ sql: database.sql, responses, clock }),
    limitMetrics,
  });

  const consumer = (
    name: string,
    source: string,
    read: FeedReader,
    react: Pick<ConsumerDeps, "handlers" | "batchHandlers">,
  ) => new Consumer({ name, source, read, database, clock, log, tracer: o.tracer, ...react, wakeups: o.wakeups });
  const readFeed = (transport: Transport): FeedReader => upstreamFeed(transport, o.signer);
  const auditOf = (source: Parameters<typeof onAuditedEvents>[0]) => ({
    handlers: {},
    batchHandlers: onAuditedEvents(source),
  });
  const consumers = [
    consumer("identity", "factories", readFeed(o.upstreams.factories), { handlers: identity.factoryEventHandlers }),
    consumer("audit", "gateway", (range) => eventLog.read(range), auditOf("gateway")),
    consumer("audit", "factories", readFeed(o.upstreams.factories), auditOf("factories")),
    consumer("audit", "orchestrator", readFeed(o.upstreams.orchestrator), auditOf("orchestrator")),
    consumer("audit", "scheduler", readFeed(o.upstreams.scheduler), auditOf("scheduler")),
    consumer("audit", "scoring", readFeed(o.upstreams.scoring), auditOf("scoring")),
    consumer("audit", "webhook-ingress", readFeed(o.upstreams.webhookIngress), auditOf("webhook-ingress")),
  ];
  const relay = o.nats && new Relay({ eventLog, database, nats: o.nats, log });
  const pruner = responses.pruner({ sql: database.sql, clock, log });
  const auditPruner = new BackgroundLoop({
    everyMs: PRUNE_AUDIT_EVERY_MS,
    step: async () => ((await pruneAudit(database.sql, clock.now(), o.auditRetentionDays ?? 0)) ? "again" : "idle"),
    onError: (error) => log.warn({ component: "audit pruner", error }, "pruning failed"),
  });
  const countPruner = new BackgroundLoop({
    everyMs: PRUNE_COUNTS_EVERY_MS,
    step: () => pruneMetricsRequests(database.sql, clock.now()).then(() => "idle" as const),
    onError: (error) => log.warn({ component: "request count pruner", error }, "pruning failed"),
  });

  const unwatch = watchService({ service: "gateway", metrics: o.metrics, database, consumers });
  const pause = async (): Promise<void> =>
    void (await Promise.all([
      pruner.stop(),
      auditPruner.stop(),
      countPruner.stop(),
      ...consumers.map((each) => each.stop()),
    ]));

  return {
    routes: identity.routes,
    allow: identity.allow,
    requestListener: app.listener,
    get openApi() {
      return app.document;
    },
    bootstrap: identity.bootstrap,
    async start() {
      eventLog.start();
      relay?.start();
      for (const each of consumers) each.start();
      pruner.start();
      auditPruner.start();
      countPruner.start();
    },
    pause,
    async stop() {
      unwatch();
      await pause();
      await relay?.stop();
      await eventLog.stop();
      await database.close();
    },
    ready: () => database.isReachable(),
  };
}
