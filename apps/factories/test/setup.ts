import type { ConnectRouter } from "@connectrpc/connect";
import { VERBS, type Caller, type Verb } from "@millwright/caller";
import { manualClock } from "@millwright/clock";
import { factories } from "@millwright/contracts";
import { newUid, type TeamUid } from "@millwright/ids";
import { call, CallerSigner, CallerVerifier, clientFor, inProcess } from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { aCaller, memoryLog, testDatabase } from "@millwright/testing";
import {
  allowedServices,
  composeFactories,
  migrationsDir,
  type Factories,
  type FactoriesOptions,
} from "../src/compose.ts";
import { FakeIdentity } from "./fake-identity.ts";
import { FakeOrchestrator } from "./fake-orchestrator.ts";
import { FakeScheduler } from "./fake-scheduler.ts";
import { FakeScoring } from "./fake-scoring.ts";
import { FakeWebhooks } from "./fake-webhooks.ts";

const gateway = await CallerSigner.create("gateway");
const own = await CallerSigner.create("factories");
const verifier = new CallerVerifier([gateway.jwk, own.jwk]);

export const TEAM = newUid<TeamUid>();
export const OTHER_TEAM = newUid<TeamUid>();
export const NOW = new Date("2026-11-20T10:00:00.000Z");

const inTeam = (teamUid: TeamUid, verbs: readonly Verb[] = VERBS): Caller => aCaller({ teams: [{ teamUid, verbs }] });
/** Has all rights in the team. */
export const OWNER = inTeam(TEAM);
export const MEMBER = inTeam(TEAM, ["factory.view", "run.view", "run.create", "run.manage", "task.manage"]);
export const VIEWER = inTeam(TEAM, ["factory.view", "run.view"]);
/** A member of the team without any right. */
export const POWERLESS = inTeam(TEAM, []);
/** Has all rights in another team. */
export const OTHER_TEAM_OWNER = inTeam(OTHER_TEAM);

export type World = Awaited<ReturnType<typeof startWorld>>;

/** Starts the service with its own database and calls it through its API. Its upstream services are in memory. */
export async function startWorld(options: Partial<FactoriesOptions> = {}) {
  const t = await testDatabase(migrationsDir);
  const [clock, log, metrics] = [manualClock(NOW), memoryLog(), new Metrics()];
  const [identity, orchestrator, webhookIngress] = [new FakeIdentity(), new FakeOrchestrator(), new FakeWebhooks()];
  const [scheduler, scoring] = [new FakeScheduler(), new FakeScoring()];
  const serverOf = (
    service: string,
    routes: (router: ConnectRouter) => void,
    allow: Record<string, readonly string[]>,
  ) => inProcess(routes, { service, verifier, log, metrics, allow });
  const replicas: Factories[] = [];

  const upstreams = {
    identity: serverOf("gateway", (router) => identity.routes(router), FakeIdentity.allow),
    orchestrator: serverOf("orchestrator", (router) => orchestrator.routes(router), FakeOrchestrator.allow),
    scheduler: serverOf("scheduler", (router) => scheduler.routes(router), FakeScheduler.allow),
    scoring: serverOf("scoring", (router) => scoring.routes(router), FakeScoring.allow),
    webhookIngress: serverOf("webhook-ingress", (router) => webhookIngress.routes(router), FakeWebhooks.allow),
  };

  /** Starts another process of this service on the same database. */
  async function replica(more: Partial<FactoriesOptions> = {}): Promise<Factories> {
    const made = await composeFactories({
      databaseUrl: t.url,
      masterKey: new Uint8Array(32).fill(7),
      publicUrl: "https://millwright.test",
      signer: own,
      verifier,
      clock,
      metrics,
      log: Object.assign(log, { child: () => log as never }),
      upstreams,
      poolSize: 3,
      ...options,
      ...more,
    });
    replicas.push(made);
    return made;
  }

  const transportTo = (made: Factories) => serverOf("factories", (router) => made.routes(router), allowedServices);
  const clientOf = (made: Factories) => clientFor(factories.FactoryService, transportTo(made), { signer: gateway });
  const service = await replica();
  const factoryService = clientOf(service);
  return {
    t,
    clock,
    log,
    signer: own,
    upstreams,
    identity,
    orchestrator,
    webhookIngress,
    scheduler,
    scoring,
    replica,
    service,
    clientOf,
    factories: factoryService,
    branches: clientFor(factories.BranchService, transportTo(service), { signer: gateway }),
    branchesOf: (made: Factories) => clientFor(factories.BranchService, transportTo(made), { signer: gateway }),
    tasks: clientFor(factories.TaskService, transportTo(service), { signer: gateway }),
    automations: clientFor(factories.AutomationService, transportTo(service), { signer: gateway }),

    /** Creates a factory through the API. */
    async aFactory(
      settings: { name?: string; alias?: string } = {},
      caller: Caller = OWNER,
    ): Promise<factories.Factory> {
      const teamUid = caller.teams[0]?.teamUid ?? "";
      const { factory } = await factoryService.createFactory(
        { teamUid, factory: { name: "Shop", ...settings } },
        call(caller),
      );
      if (!factory) throw new Error("no factory was answered");
      return factory;
    },

    async rows<R = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<R[]> {
      return (await t.database.sql.query<R>(text, params)).rows;
    },

    /** Returns the types of the events written so far, in order. */
    async eventTypes(): Promise<string[]> {
      const { rows } = await t.database.sql.query<{ type: string }>(
        "SELECT type FROM stream.event_log UNION ALL (SELECT type FROM stream.event_pending ORDER BY seq)",
      );
      return rows.map(({ type }) => type.replace(/^millwright\.|\.v1$/g, ""));
    },

    /** Empties the database and resets the upstream services. */
    async reset(): Promise<void> {
      await t.database.sql.query(
        "TRUNCATE factories, tasks, automations, trigger_events, idempotency_keys, stream.event_pending, stream.event_log, stream.work_items CASCADE",
      );
      identity.owner.reset();
      orchestrator.owner.reset();
      webhookIngress.owner.reset();
      scoring.owner.reset();
    },

    async stop(): Promise<void> {
      for (const made of replicas) await made.stop();
      await t.close();
    },
  };
}

/** Returns a member of the team whose credential is the token of a run. */
export const aRun = (runUid: string): Caller => ({
  ...inTeam(TEAM, ["factory.view", "run.view", "run.create", "run.manage", "task.manage", "artifact.manage"]),
  principal: { type: "agent", uid: newUid() },
  run: { runUid: runUid as never, rootRunUid: runUid as never, executionId: "1", attempt: 1 },
});
