import type { ConnectRouter } from "@connectrpc/connect";
import { VERBS, type Caller, type Verb } from "@millwright/caller";
import { manualClock } from "@millwright/clock";
import { metrics as contract } from "@millwright/contracts";
import { newUid, type TeamUid } from "@millwright/ids";
import { CallerSigner, CallerVerifier, clientFor, inProcess } from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { aCaller, memoryLog, testDatabase } from "@millwright/testing";
import {
  allowedServices,
  composeMetrics,
  migrationsDir,
  type MetricsApp,
  type MetricsOptions,
} from "../src/compose.ts";
import { FakeFactories, type FakeFactory } from "./fake-factories.ts";
import { FakeIdentity } from "./fake-identity.ts";
import { FakeOrchestrator } from "./fake-orchestrator.ts";
import { FakeWebhooks } from "./fake-webhooks.ts";
import { runSnapshot, type FakeRun, type RunInit } from "./run-samples.ts";

const gateway = await CallerSigner.create("gateway");
const own = await CallerSigner.create("metrics");
const verifier = new CallerVerifier([gateway.jwk, own.jwk]);

export const TEAM = newUid<TeamUid>();
export const OTHER_TEAM = newUid<TeamUid>();
/** A Friday. */
export const NOW = new Date("2026-11-20T10:00:00.000Z");

const inTeam = (teamUid: TeamUid, verbs: readonly Verb[] = VERBS): Caller => ({
  ...aCaller({ teams: [{ teamUid, verbs }] }),
  principal: { type: "user", uid: newUid() },
});
/** May do everything in the team. */
export const OWNER = inTeam(TEAM);
/** May see runs of the team, but no factory. */
export const RUN_VIEWER = inTeam(TEAM, ["run.view"]);
/** Administers the platform, and is in no team. */
export const ADMIN: Caller = {
  ...aCaller({ teams: [] }),
  principal: { type: "user", uid: newUid() },
  platformAdmin: true,
};
/** May do everything in another team. */
export const STRANGER = inTeam(OTHER_TEAM);

export type World = Awaited<ReturnType<typeof startWorld>>;

/** The service on a database of its own, with a stopped clock; its upstream services are in memory. */
export async function startWorld(options: Partial<MetricsOptions> = {}) {
  const t = await testDatabase(migrationsDir);
  const [log, metrics, clock] = [memoryLog(), new Metrics(), manualClock(NOW)];
  const orchestrator = new FakeOrchestrator(() => clock.now());
  const [identity, factories, webhookIngress] = [new FakeIdentity(), new FakeFactories(), new FakeWebhooks()];
  const serve = (service: string, routes: (router: ConnectRouter) => void, allow: Record<string, readonly string[]>) =>
    inProcess(routes, { service, verifier, log, metrics, allow });
  const replicas: MetricsApp[] = [];

  /** One more process of this service on the same database. */
  function replica(more: Partial<MetricsOptions> = {}): MetricsApp {
    const made = composeMetrics({
      databaseUrl: t.url,
      masterKey: new Uint8Array(32).fill(7),
      publicUrl: "https://millwright.test",
      signer: own,
      verifier,
      clock,
      metrics: new Metrics(),
      log: Object.assign(log, { child: () => log as never }),
      upstreams: {
        identity: serve("gateway", (router) => identity.routes(router), FakeIdentity.allow),
        orchestrator: serve("orchestrator", (router) => orchestrator.routes(router), FakeOrchestrator.allow),
        factories: serve("factories", (router) => factories.routes(router), FakeFactories.allow),
        webhookIngress: serve("webhook-ingress", (router) => webhookIngress.routes(router), FakeWebhooks.allow),
      },
      poolSize: 4,
      ...options,
      ...more,
    });
    replicas.push(made);
    return made;
  }

  const service = replica();

  return {
    t,
    log,
    clock,
    orchestrator,
    identity,
    factories,
    webhookIngress,
    replica,
    service,
    /** This service, as the gateway calls it. */
    metrics: clientFor(
      contract.MetricsService,
      serve("metrics", (router) => service.routes(router), allowedServices),
      { signer: gateway },
    ),
    /** The price book and credits, as the gateway calls them. */
    prices: clientFor(
      contract.PriceService,
      serve("metrics", (router) => service.routes(router), allowedServices),
      { signer: gateway },
    ),

    /** Returns the rows of a query. */
    rows: async <R = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<R[]> =>
      (await t.database.sql.query<R>(text, params)).rows,

    /** Adds a factory of the team. Returns its uid. */
    aFactory: (factory: Partial<FakeFactory> = {}): string => factories.aFactory({ teamUid: TEAM, ...factory }).uid,

    /** Adds a run of the team to the orchestrator and publishes its event. */
    aRun(init: Partial<RunInit> = {}): FakeRun {
      const run = runSnapshot({ teamUid: TEAM, ...init });
      orchestrator.put(run);
      return run;
    },

    /** Consumes every event and reads all facts that are due. */
    async settle(made: MetricsApp = service): Promise<void> {
      for (const consumer of made.consumers) await consumer.drain();
      await made.refreshDue();
    },

    /** Empties the database and the upstream services and sets the clock back to NOW. */
    async reset(): Promise<void> {
      await t.database.sql.query(
        `TRUNCATE stale_runs, run_facts, run_days, ledger_entries, cost_group_days, tree_costs, repository_merge_days, pull_requests, pull_request_activities, produced_pull_requests,
                  pull_request_shares, factory_pull_requests, polled_repositories, polled_pull_requests, code_host_pauses, stream.event_pending, stream.feed_cursors, stream.dead_lettered_events, stream.work_items,
                  repricings, credit_grants, idempotency_keys`,
      );
      await t.database.sql.query("DELETE FROM compute_prices WHERE version > 1");
      for (const upstream of [orchestrator, identity, factories, webhookIngress]) upstream.clear();
      clock.set(NOW);
    },

    async stop(): Promise<void> {
      for (const made of replicas) await made.stop();
      await t.close();
    },
  };
}
