import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { events } from "@millwright/contracts";
import { BackgroundLoop, Database } from "@millwright/database";
import { Consumer, EventLog, Relay, serveEventFeed } from "@millwright/events";
import { Cursors } from "@millwright/paging";
import { allowServices } from "@millwright/rpc";
import { upstreamFeed, watchService, type ServiceOptions } from "@millwright/service";
import { deriveKeys } from "@millwright/vault";
import { identityClient } from "./clients/identity-client.ts";
import { environmentClient, orchestratorClient } from "./clients/orchestrator-client.ts";
import { onlyScheduledRuns } from "./clients/run-feed.ts";
import { onAutomationEvents } from "./events/on-automation-events.ts";
import { onIdentityEvents } from "./events/on-identity-events.ts";
import { onRunEvents } from "./events/on-run-events.ts";
import { triggerSlotEvent } from "./events/trigger-events.ts";
import { DueLoop } from "./due-loop.ts";
import { schedulerRoutes, type RoutesDeps } from "./rpc/routes.ts";
import { SlotLoop } from "./slot-loop.ts";
import { DATABASE_TIME } from "./store/database-time.ts";
import { scheduleStore } from "./store/schedule-store.ts";
import { slotStore } from "./store/slot-store.ts";
import { triggerStore } from "./store/trigger-store.ts";
import { fireSlots } from "./usecases/fire-slots.ts";
import { responses } from "./store/idempotency.ts";

/** Applied by the process that starts the service, before the service is composed. */
export const migrationsDir = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

/** Which services may call in their own name. */
export const allowedServices = allowServices(events.EventFeedService, { read: ["gateway", "factories"] });

export type SchedulerOptions = ServiceOptions & {
  readonly upstreams: { identity: Transport; orchestrator: Transport; factories: Transport };
  /** Days for which the ledger retains decided slots. Default 90. */
  readonly slotDays?: number;
  /** Divides every lease and wait, so that failure tests run faster. Default 1. */
  readonly timeScale?: number;
  /** SQL expression of the current time, the only clock that slots use. Default `now()`; tests set their own. */
  readonly databaseTime?: string;
};

/** How long a replica owns a batch of slots before another replica may decide them. */
const LEASE_MS = 30_000;
/** Less than the lease: a call without a response by then is retried by the next owner of the lease. */
const RUNS_TIMEOUT_MS = 20_000;

const SLOT_DAYS = 90;
const PRUNE_EVERY_MS = 600_000;
/** Slots deleted in one transaction. */
const PRUNE_BATCH = 5_000;
/** Triggers of automations fired in one transaction. */
const TRIGGER_BATCH = 1_000;

/** Builds the object graph of this service. */
export function composeScheduler(o: SchedulerOptions) {
  const { clock, log, signer, timeScale = 1, databaseTime = DATABASE_TIME } = o;
  const database = Database.open(o.databaseUrl, { max: o.poolSize ?? 6, applicationName: "scheduler" });
  const eventLog = new EventLog({ database, clock, log, retentionDays: o.eventRetentionDays, wakeups: o.wakeups });
  const wakeLoops = (): void => {
    eventLog.wake();
    slots.wake();
  };
  const ledger = slotStore(database, databaseTime);
  const runs = orchestratorClient(o.upstreams.orchestrator, signer, {
    publicUrl: o.publicUrl,
    timeoutMs: Math.max(1_000, RUNS_TIMEOUT_MS / timeScale),
  });
  const slots = new SlotLoop({
    ...ledger,
    fire: (lease, claimed) => fireSlots({ slots: ledger, runs, log, timeScale }, lease, claimed),
    log,
    leaseMs: LEASE_MS / timeScale,
  });
  const triggers = triggerStore(database, databaseTime, triggerSlotEvent);
  /** Fires the slots of automations that have come due; returns the number of schedules. */
  const fireTriggers = async (): Promise<number> => {
    const count = await triggers.fireDue(TRIGGER_BATCH);
    if (count > 0) eventLog.wake();
    return count;
  };
  const triggerLoop = new DueLoop({
    processDue: fireTriggers,
    waitMs: () => triggers.waitMs(),
    onError: (error) => log.warn({ error }, "firing triggers of automations failed; retrying"),
  });
  /** Deletes old slots; returns how many. */
  const pruneSlots = (): Promise<number> => ledger.prune(o.slotDays ?? SLOT_DAYS, PRUNE_BATCH);
  const pruner = new BackgroundLoop({
    everyMs: PRUNE_EVERY_MS,
    step: async () => ((await pruneSlots()) === PRUNE_BATCH ? "again" : "idle"),
    onError: (error) => log.warn({ error }, "deleting old slots failed; retrying"),
  });
  const responsePruner = responses.pruner({ sql: database.sql, clock, log });
  const deps: RoutesDeps = {
    schedules: scheduleStore(database, databaseTime, wakeLoops),
    slots: ledger,
    agents: identityClient(o.upstreams.identity, signer),
    environments: environmentClient(o.upstreams.orchestrator, signer),
    cursors: new Cursors(...deriveKeys(o, "scheduler page tokens")),
  };
  const consuming = { database, clock, log, tracer: o.tracer, wakeups: o.wakeups };
  const consumers = [
    new Consumer({
      ...consuming,
      name: "slots",
      source: "orchestrator",
      read: onlyScheduledRuns(upstreamFeed(o.upstreams.orchestrator, signer)),
      ...onRunEvents({ databaseTime, wake: wakeLoops }),
    }),
    new Consumer({
      ...consuming,
      name: "schedules",
      source: "gateway",
      read: upstreamFeed(o.upstreams.identity, signer),
      handlers: onIdentityEvents(databaseTime),
    }),
    new Consumer({
      ...consuming,
      name: "triggers",
      source: "factories",
      read: upstreamFeed(o.upstreams.factories, signer),
      handlers: onAutomationEvents({ triggers, wake: () => triggerLoop.wake() }),
    }),
  ];
  const unwatch = watchService({ service: "scheduler", metrics: o.metrics, database, consumers });
  const pause = async (): Promise<void> =>
    void (await Promise.all([
      slots.stop(),
      triggerLoop.stop(),
      pruner.stop(),
      responsePruner.stop(),
      ...consumers.map((consumer) => consumer.stop()),
    ]));
  const relay = o.nats && new Relay({ eventLog, database, nats: o.nats, log });
  return {
    /** For tests, which run the background work step by step. */
    slots,
    fireTriggers,
    pruneSlots,
    consumers,
    routes(router: ConnectRouter): void {
      schedulerRoutes(router, deps);
      router.service(events.EventFeedService, serveEventFeed(eventLog));
    },
    async start(): Promise<void> {
      eventLog.start();
      relay?.start();
      slots.start();
      triggerLoop.start();
      pruner.start();
      responsePruner.start();
      for (const consumer of consumers) consumer.start();
    },
    /** Stops the background work, above all calls to upstream services; RPCs are still served. Call it before `stop`. */
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
  };
}

export type Scheduler = ReturnType<typeof composeScheduler>;
