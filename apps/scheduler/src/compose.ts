import { fileURLToPath } from "node:url";
import type { ConnectRouter, Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { events } from "@millwright/contracts";
import { BackgroundLoop, Database } from "@millwright/database";
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
import { Cursors } from "@millwright/paging";
import { allowServices, call, clientFor } from "@millwright/rpc";
import { watchService, type ServiceOptions } from "@millwright/service";
import { deriveKey } from "@millwright/vault";
import { identityClient } from "./clients/identity-client.ts";
import { environmentClient, orchestratorClient } from "./clients/orchestrator-client.ts";
import { ofScheduledRuns } from "./clients/run-feed.ts";
import { onAutomationEvents } from "./events/on-automation-events.ts";
import { onIdentityEvents } from "./events/on-identity-events.ts";
import { onRunEvents } from "./events/on-run-events.ts";
import { scheduleUpdated } from "./events/schedule-events.ts";
import { slotTaken } from "./events/trigger-events.ts";
import { DueLoop } from "./due-loop.ts";
import { schedulerRoutes, type RoutesDeps } from "./rpc/routes.ts";
import { SlotLoop } from "./slot-loop.ts";
import { DATABASE_TIME, readTime } from "./store/database-time.ts";
import { scheduleStore, updateSchedulesOfAgent, updateSchedulesOfMember } from "./store/schedule-store.ts";
import { noteRuns, noteRunEnd, slotStore } from "./store/slot-store.ts";
import { forgetTriggers, triggerStore } from "./store/trigger-store.ts";
import { fireSlots } from "./usecases/fire-slots.ts";
import { followAgentDeletion, followCreatorLeft } from "./usecases/follow-identity.ts";

/** Applied by whoever starts the service, before it is composed. */
export const migrationsDir = fileURLToPath(new URL("../prisma/migrations", import.meta.url));

/** Which services may call in their own name. */
export const allowedServices = allowServices(events.EventFeedService, { read: ["gateway", "factories"] });

export type SchedulerOptions = ServiceOptions & {
  readonly upstreams: { identity: Transport; orchestrator: Transport; factories: Transport };
  /** How long the ledger tells what became of a slot; 90 by default. */
  readonly slotDays?: number;
  /** Divides every lease and wait; for tests of failures. Default 1. */
  readonly timeScale?: number;
  /** What time it is, as SQL: the only clock that slots go by. Default `now()`; tests drive their own. */
  readonly databaseTime?: string;
};

export type Scheduler = {
  routes(router: ConnectRouter): void;
  start(): Promise<void>;
  /** Ends what this service does by itself, above all what it asks of its upstream services; it goes on answering. Before `stop`. */
  pause(): Promise<void>;
  stop(): Promise<void>;
  /** Whether the database answers. */
  ready(): Promise<boolean>;
  /** The loops that `start` starts, for tests that drive them step by step. */
  readonly slots: SlotLoop;
  /** Takes the slots of automations that are over; answers how many schedules it was. */
  fireTriggers(): Promise<number>;
  /** Deletes slots of long ago; answers how many. */
  pruneSlots(): Promise<number>;
  readonly consumers: readonly Consumer[];
};

/** How long a replica has for a batch of slots before another may decide about them. */
const LEASE_MS = 30_000;
/** Less than the lease: what is not answered by then is tried again by whoever has it next. */
const RUNS_TIMEOUT_MS = 20_000;

const SLOT_DAYS = 90;
const PRUNE_EVERY_MS = 600_000;
/** Slots deleted in one transaction. */
const PRUNED_AT_ONCE = 5_000;
/** Triggers of automations taken in one transaction. */
const TRIGGERS_AT_ONCE = 1_000;

/** The object graph of this service. */
export function composeScheduler(o: SchedulerOptions): Scheduler {
  const { clock, log, signer, timeScale = 1, databaseTime = DATABASE_TIME } = o;
  const database = Database.open(o.databaseUrl, { max: o.poolSize ?? 6, applicationName: "scheduler" });
  const wakeups = o.wakeups ? { wakeups: o.wakeups } : {};
  const eventLog = new EventLog({ database, clock, log, ...wakeups });
  const wake = (): void => {
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
  const triggers = triggerStore(database, databaseTime, slotTaken);
  const fireTriggers = async (): Promise<number> => {
    const count = await triggers.fireDue(TRIGGERS_AT_ONCE);
    if (count > 0) eventLog.wake();
    return count;
  };
  const triggerLoop = new DueLoop({
    take: fireTriggers,
    waitMs: () => triggers.waitMs(),
    onError: (error) => log.warn({ error }, "triggers of automations were not fired; it is tried again"),
  });
  const pruneSlots = (): Promise<number> => ledger.prune(o.slotDays ?? SLOT_DAYS, PRUNED_AT_ONCE);
  const pruner = new BackgroundLoop({
    everyMs: PRUNE_EVERY_MS,
    step: async () => ((await pruneSlots()) === PRUNED_AT_ONCE ? "again" : "idle"),
    onError: (error) => log.warn({ error }, "old slots were not deleted; it is tried again"),
  });
  const deps: RoutesDeps = {
    schedules: scheduleStore(database, databaseTime, wake),
    slots: ledger,
    agents: identityClient(o.upstreams.identity, signer),
    environments: environmentClient(o.upstreams.orchestrator, signer),
    cursors: new Cursors(deriveKey(o.masterKey, "scheduler page tokens")),
  };
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
  const consumers = [
    consumer(
      "slots",
      "orchestrator",
      ofScheduledRuns(readFeed(o.upstreams.orchestrator)),
      onRunEvents({ noteRuns, noteRunEnd: (tx, ended) => noteRunEnd(tx, databaseTime, ended), wake }),
    ),
    consumer("schedules", "gateway", readFeed(o.upstreams.identity), {
      handlers: onIdentityEvents({
        pauseMember: async (tx, member, origin) =>
          followCreatorLeft(
            (change) => updateSchedulesOfMember(tx, member, change),
            await readTime(tx, databaseTime),
            (next) => scheduleUpdated(next, origin, ["enabled"]),
          ),
        pauseAgent: async (tx, agentUid, origin) =>
          followAgentDeletion(
            (change) => updateSchedulesOfAgent(tx, agentUid, change),
            await readTime(tx, databaseTime),
            (next) => scheduleUpdated(next, origin, ["enabled"]),
          ),
      }),
    }),
    consumer("triggers", "factories", readFeed(o.upstreams.factories), {
      handlers: onAutomationEvents({
        follow: (tx, automation, saidAt) => triggers.follow(tx, automation, saidAt),
        forget: forgetTriggers,
        wake: () => triggerLoop.wake(),
      }),
    }),
  ];
  const unwatch = watchService({ service: "scheduler", metrics: o.metrics, database, consumers });
  const pause = async (): Promise<void> =>
    void (await Promise.all([
      slots.stop(),
      triggerLoop.stop(),
      pruner.stop(),
      ...consumers.map((each) => each.stop()),
    ]));
  const relay = o.nats && new Relay({ eventLog, database, nats: o.nats, log });
  return {
    slots,
    fireTriggers,
    pruneSlots,
    consumers,
    routes(router) {
      schedulerRoutes(router, deps);
      router.service(events.EventFeedService, serveEventFeed(eventLog));
    },
    async start() {
      eventLog.start();
      relay?.start();
      slots.start();
      triggerLoop.start();
      pruner.start();
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
