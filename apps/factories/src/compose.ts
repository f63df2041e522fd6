import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { events, factories } from "@millwright/contracts";
import { BackgroundLoop, Database } from "@millwright/database";
import { bestEffort } from "@millwright/errors";
import { Consumer, EventLog, Relay, serveEventFeed } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { outboundRule, type OutboundRule } from "@millwright/outbound";
import { Cursors } from "@millwright/paging";
import { allowServices } from "@millwright/rpc";
import { upstreamFeed, watchService, type ServiceOptions } from "@millwright/service";
import { deriveKeys } from "@millwright/vault";
import { WorkQueue } from "@millwright/work";
import { composeAutomations, type AutomationsOptions } from "./compose-automations.ts";
import { definitionOwners } from "./clients/definition-owners.ts";
import { definitionTrees } from "./clients/definition-trees.ts";
import { removeLeftovers } from "./clients/git-repository.ts";
import { identityClient } from "./clients/identity-client.ts";
import { orchestratorClient } from "./clients/orchestrator-client.ts";
import { webhooksClient } from "./clients/webhooks-client.ts";
import { withTitles } from "./clients/run-feed.ts";
import { onPushEvents } from "./events/on-push-events.ts";
import { onRunEvents } from "./events/on-run-events.ts";
import { automationRoutes } from "./rpc/automation-routes.ts";
import { factoryRoutes } from "./rpc/routes.ts";
import { applyStore } from "./store/apply-store.ts";
import { automationStore } from "./store/automation-store.ts";
import { branchStore } from "./store/branch-store.ts";
import { factoryStore } from "./store/factory-store.ts";
import { changesOf, openPrisma } from "./store/prisma-client.ts";
import { sourceStore } from "./store/source-store.ts";
import { taskStore } from "./store/task-store.ts";
import { definitionWork } from "./usecases/activate-definition.ts";
import { pollDueHeads } from "./usecases/branch-heads.ts";
import { pushWork } from "./usecases/register-push.ts";
import { responses, responseStore } from "./store/idempotency.ts";

/** Applied by the process that starts the service, before the service is composed. */
export const migrationsDir = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

/** Which services may call in their own name. */
export const allowedServices = {
  ...allowServices(events.EventFeedService, {
    read: ["gateway", "orchestrator", "webhook-ingress", "scheduler", "scoring"],
  }),
  ...allowServices(factories.FactoryService, { getFactory: ["scoring"] }),
};

export type FactoriesOptions = ServiceOptions & {
  readonly upstreams: {
    identity: Transport;
    orchestrator: Transport;
    scheduler: Transport;
    scoring: Transport;
    webhookIngress: Transport;
  };
  /** Directories that may contain local definition repositories. Default: none. */
  readonly localRepositoryRoots?: readonly string[];
  /** Which addresses set by teams may be reached. Default: public addresses only. */
  readonly outbound?: OutboundRule;
  readonly gitTimeoutMs?: number;
  /** A PEM file with additional certificate authorities for repository hosts. */
  readonly gitCaFile?: string | undefined;
  /** Largest file of a fetched repository. Default 512 MiB. */
  readonly gitFileBytesMax?: number;
  /** Interval of polls of a tracked branch's head. Default 30 s. */
  readonly headPollMs?: number;
  /** How long an apply waits for the owners; 10 s by default. */
  readonly activationWaitMs?: number;
};

const DUE_HEADS_POLL_MS = 1_000;
const GIT_FILE_BYTES_MAX = 512 * 1024 * 1024;

/** Builds the object graph of this service. */
export async function composeFactories(o: FactoriesOptions) {
  const { clock, log, signer } = o;
  const database = Database.open(o.databaseUrl, { max: o.poolSize ?? 6, applicationName: "factories" });
  const eventLog = new EventLog({ database, clock, log, retentionDays: o.eventRetentionDays, wakeups: o.wakeups });
  const prisma = openPrisma(database);
  const changes = changesOf(prisma, () => {
    eventLog.wake();
    work.wake();
  });
  const runs = orchestratorClient(o.upstreams.orchestrator, signer);
  const agents = identityClient(o.upstreams.identity, signer);
  const owners = definitionOwners(
    [o.upstreams.identity, o.upstreams.orchestrator, o.upstreams.webhookIngress],
    signer,
    [o.upstreams.scoring],
  );
  const branches = branchStore(prisma, changes, database.sql);
  const heads = { wake: () => headPolling.wake() };
  const deps: AutomationsOptions["deps"] = {
    factories: factoryStore(prisma, changes, database.sql),
    branches,
    heads,
    headPollMs: o.headPollMs ?? 30_000,
    sources: sourceStore(prisma, changes),
    applies: applyStore(prisma, changes),
    automations: automationStore(database),
    tasks: taskStore(database, clock),
    responses: responseStore(database.sql, clock),
    runs,
    agents,
    owners,
    activation: { ...owners, ...agents },
    trees: definitionTrees({
      localRepositoryRoots: o.localRepositoryRoots ?? [],
      outbound: o.outbound ?? outboundRule([]),
      timeoutMs: o.gitTimeoutMs ?? 30_000,
      fileBytesMax: o.gitFileBytesMax ?? GIT_FILE_BYTES_MAX,
      caFile: o.gitCaFile,
      secretOf: (teamUid, name) => agents.secretOf(teamUid, name),
    }),
    cursors: new Cursors(...deriveKeys(o, "factories page tokens")),
    activationWaitMs: o.activationWaitMs ?? 10_000,
    clock,
    log,
  };
  const automations = composeAutomations({ ...o, database, eventLog, deps, runs, agents });
  const work = new WorkQueue({
    database,
    clock,
    log,
    tracer: o.tracer,
    handlers: {
      ...definitionWork(deps),
      ...pushWork({ ...deps, branches, heads, deliveries: webhooksClient(o.upstreams.webhookIngress, signer) }),
      ...automations.work,
    },
    separate: automations.separateWork,
  });
  const headPolling = new BackgroundLoop({
    everyMs: Math.min(DUE_HEADS_POLL_MS, deps.headPollMs),
    step: () => pollDueHeads(deps),
    onError: (error) => log.warn({ component: "branch heads", error }, "polling branch heads failed; retrying"),
  });
  const self = serviceCaller(signer.service, newUid());
  const consuming = { database, clock, log, tracer: o.tracer, wakeups: o.wakeups };
  const tasks = new Consumer({
    ...consuming,
    name: "tasks",
    source: "orchestrator",
    read: withTitles(upstreamFeed(o.upstreams.orchestrator, signer), (uids) => runs.titlesOf(self, uids)),
    ...onRunEvents(clock),
  });
  const pushes = new Consumer({
    ...consuming,
    name: "branches",
    source: "webhook-ingress",
    read: upstreamFeed(o.upstreams.webhookIngress, signer),
    handlers: onPushEvents(),
  });
  const unwatch = watchService({
    service: "factories",
    metrics: o.metrics,
    database,
    consumers: [tasks, pushes, ...automations.consumers],
    work,
  });
  const responsePruner = responses.pruner({ sql: database.sql, clock, log });
  const loops = [tasks, pushes, ...automations.consumers, automations.pruner, responsePruner, headPolling];
  const pause = async (): Promise<void> => void (await Promise.all([...loops.map((loop) => loop.stop()), work.stop()]));
  const relay = o.nats && new Relay({ eventLog, database, nats: o.nats, log });
  return {
    /** For tests, which run the background work step by step. */
    tasks,
    pushes,
    work,
    automationEvents: automations.consumers,
    prune: () => automations.prune(),
    pollHeads: () => pollDueHeads(deps),
    routes(router: ConnectRouter): void {
      factoryRoutes(router, deps);
      automationRoutes(router, automations.deps);
      router.service(events.EventFeedService, serveEventFeed(eventLog));
    },
    async start(): Promise<void> {
      eventLog.start();
      relay?.start();
      work.start();
      for (const loop of loops) loop.start();
      await bestEffort("remove directories of killed git fetches", log, removeLeftovers);
    },
    /** Stops the background work, above all calls to upstream services; RPCs are still served. Call it before `stop`. */
    pause,
    async stop(): Promise<void> {
      unwatch();
      await pause();
      await relay?.stop();
      await eventLog.stop();
      await prisma.$disconnect();
      await database.close();
    },
    /** Returns whether the database responds. */
    ready: () => database.isReachable(),
  };
}

export type Factories = Awaited<ReturnType<typeof composeFactories>>;
