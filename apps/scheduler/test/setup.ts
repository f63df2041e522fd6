import type { JsonObject } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { VERBS, type Caller, type Verb } from "@millwright/caller";
import { manualClock, type Clock } from "@millwright/clock";
import { events, identity, orchestrator as contracts, scheduler } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid, type TeamUid } from "@millwright/ids";
import { allowServices, call, CallerSigner, CallerVerifier, clientFor, inProcess } from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { aCaller, memoryLog, testDatabase } from "@millwright/testing";
import {
  allowedServices,
  composeScheduler,
  migrationsDir,
  type Scheduler,
  type SchedulerOptions,
} from "../src/compose.ts";
import { FakeOrchestrator } from "./fake-orchestrator.ts";

const gateway = await CallerSigner.create("gateway");
const own = await CallerSigner.create("scheduler");
const verifier = new CallerVerifier([gateway.jwk, own.jwk]);

export const TEAM = newUid<TeamUid>();
export const OTHER_TEAM = newUid<TeamUid>();
/** A Friday. */
export const NOW = new Date("2026-11-20T10:00:30.000Z");

const inTeam = (teamUid: TeamUid, verbs: readonly Verb[] = VERBS): Caller => ({
  ...aCaller({ teams: [{ teamUid, verbs }] }),
  principal: { type: "user", uid: newUid() },
});
/** Has every verb in the team. */
export const OWNER = inTeam(TEAM);
export const VIEWER = inTeam(TEAM, ["factory.view", "run.view"]);
/** Has every verb in another team. */
export const OTHER_TEAM_OWNER = inTeam(OTHER_TEAM);
/** The same rights as the owner, by the token of a run. */
export const RUN: Caller = {
  ...inTeam(TEAM),
  principal: { type: "agent", uid: newUid() },
  run: { runUid: newUid(), rootRunUid: newUid(), executionId: "1", attempt: 1 },
};

export type Settings = Partial<
  Pick<
    scheduler.Schedule,
    | "name"
    | "cronSchedule"
    | "timeZone"
    | "enabled"
    | "prompt"
    | "agentConfig"
    | "agentUid"
    | "mode"
    | "metadata"
    | "overlapPolicy"
    | "catchUpSeconds"
    | "ownerType"
    | "ownerUid"
  >
>;
export const A_SCHEDULE = {
  name: "Nightly",
  cronSchedule: "* * * * *",
  enabled: true,
  prompt: "Look.",
  ownerType: "team",
  ownerUid: TEAM,
};

export type FakeEvent = { type: string; entityUid: string; teamUid?: string; occurredAt?: Date; payload?: JsonObject };

/** Serves a feed of the events in `list`. */
function serveFeed(router: ConnectRouter, list: readonly FakeEvent[]): void {
  router.service(events.EventFeedService, {
    read: async ({ after }) => ({
      logUid: "0199a000-0000-7000-8000-000000000001",
      head: BigInt(list.length),
      events: list.slice(Number(after)).map(({ occurredAt = NOW, ...event }, index) => ({
        payload: {},
        ...event,
        uid: newUid(),
        position: after + BigInt(index) + 1n,
        entity: event.type.split(".")[1]!,
        entityVersion: 1n,
        actorType: "user",
        actorUid: "u-1",
        requestId: "r-1",
        occurredAt: timestampFromDate(occurredAt),
      })),
    }),
  });
}

export type World = Awaited<ReturnType<typeof startWorld>>;

/** Starts the service on its own database, whose clock is moved by the test; its upstream services are in memory. */
export async function startWorld(options: Partial<SchedulerOptions> = {}) {
  const t = await testDatabase(migrationsDir);
  await t.database.sql.query("CREATE TABLE test_clock (at timestamptz NOT NULL)");
  await t.database.sql.query("INSERT INTO test_clock VALUES ($1)", [NOW]);
  const [log, metrics, orchestrator] = [memoryLog(), new Metrics(), new FakeOrchestrator()];
  const agents = new Set<string>();
  const environments = new Set<string>();
  const [gatewayFeed, factoriesFeed]: FakeEvent[][] = [[], []];
  const transportTo = (
    service: string,
    routes: (router: ConnectRouter) => void,
    allow: Record<string, readonly string[]>,
  ) => inProcess(routes, { service, verifier, log, metrics, allow });
  const identityRoutes = (router: ConnectRouter): void => {
    router.service(identity.IdentityService, {
      resolveAgent: async ({ agentUid }) => {
        if (!agents.has(agentUid)) throw notFound("agent");
        return { agentUid };
      },
    });
    serveFeed(router, gatewayFeed!);
  };
  const orchestratorRoutes = (router: ConnectRouter): void => {
    orchestrator.routes(router);
    router.service(contracts.CatalogService, {
      checkEnvironment: async ({ uid, ownerType, ownerUid }) => {
        if (!environments.has(`${ownerType} ${ownerUid} ${uid}`)) throw notFound("environment");
        return {};
      },
    });
  };
  const replicas: Scheduler[] = [];

  /** Adds a replica on the same database. `clock` is of its machine; slots must not depend on it. */
  function replica(overrides: Partial<SchedulerOptions> = {}, clock: Clock = manualClock(NOW)): Scheduler {
    const instance = composeScheduler({
      databaseUrl: t.url,
      masterKey: new Uint8Array(32).fill(7),
      publicUrl: "https://millwright.test",
      signer: own,
      verifier,
      clock,
      metrics: new Metrics(),
      log: Object.assign(log, { child: () => log as never }),
      upstreams: {
        identity: transportTo(
          "gateway",
          identityRoutes,
          allowServices(events.EventFeedService, { read: ["scheduler"] }),
        ),
        orchestrator: transportTo("orchestrator", orchestratorRoutes, FakeOrchestrator.allow),
        factories: transportTo(
          "factories",
          (router) => serveFeed(router, factoriesFeed!),
          allowServices(events.EventFeedService, { read: ["scheduler"] }),
        ),
      },
      poolSize: 3,
      databaseTime: "(SELECT at FROM test_clock)",
      ...options,
      ...overrides,
    });
    replicas.push(instance);
    return instance;
  }

  const service = replica();
  const schedules = clientFor(
    scheduler.ScheduleService,
    transportTo("scheduler", (router) => service.routes(router), allowedServices),
    { signer: gateway },
  );
  const rows = async <R = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<R[]> =>
    (await t.database.sql.query<R>(text, params)).rows;
  return {
    t,
    log,
    orchestrator,
    agents,
    environments,
    gatewayFeed: gatewayFeed!,
    factoriesFeed: factoriesFeed!,
    replica,
    service,
    schedules,
    rows,

    async aSchedule(settings: Settings = {}, caller: Caller = OWNER): Promise<scheduler.Schedule> {
      const { schedule } = await schedules.createSchedule({ schedule: { ...A_SCHEDULE, ...settings } }, call(caller));
      return schedule!;
    },
    read: async (uid: string): Promise<scheduler.Schedule> =>
      (await schedules.getSchedule({ uid }, call(OWNER))).schedule!,

    /** Sets the database's time. */
    async setTime(to: Date | string): Promise<void> {
      await t.database.sql.query("UPDATE test_clock SET at = $1", [new Date(to)]);
    },
    async advance(seconds: number): Promise<void> {
      await t.database.sql.query("UPDATE test_clock SET at = at + $1 * interval '1 second'", [seconds]);
    },

    /** Returns the ledger, oldest first: "10:01 fired", "10:02 skipped overlap". */
    async ledger(uid: string): Promise<string[]> {
      const { slots } = await schedules.listSlots({ scheduleUid: uid, pageSize: 500 }, call(OWNER));
      return slots
        .toReversed()
        .map(({ slotAt, state, reason }) =>
          [timestampDate(slotAt!).toISOString().slice(11, 16), state, reason].filter(Boolean).join(" "),
        );
    },

    /** Returns the types of the events written so far, in order. */
    async eventTypes(): Promise<string[]> {
      const found = await rows<{ type: string }>(
        "SELECT type FROM stream.event_log UNION ALL (SELECT type FROM stream.event_pending ORDER BY seq)",
      );
      return found.map(({ type }) => type.replace(/^millwright\.|\.v1$/g, ""));
    },

    /** Empties the database and the upstream services. */
    async reset(): Promise<void> {
      await t.database.sql.query(
        "TRUNCATE schedules, slots, trigger_schedules, idempotency_keys, stream.event_pending, stream.feed_cursors, stream.dead_lettered_events CASCADE",
      );
      await t.database.sql.query("UPDATE test_clock SET at = $1", [NOW]);
      orchestrator.runs.clear();
      Object.assign(orchestrator, {
        feed: [],
        beforeCreate: () => {},
        beforeResponse: () => {},
        beforeCancel: () => {},
      });
      orchestrator.batches.length = orchestrator.cancelled.length = gatewayFeed!.length = factoriesFeed!.length = 0;
      agents.clear();
      environments.clear();
    },

    async stop(): Promise<void> {
      for (const running of replicas) await running.stop();
      await t.close();
    },
  };
}
