import type { DescService, MessageInitShape } from "@bufbuild/protobuf";
import type { Client, ConnectRouter } from "@connectrpc/connect";
import { VERBS, type Caller, type Verb } from "@millwright/caller";
import { manualClock } from "@millwright/clock";
import { definitions, scoring } from "@millwright/contracts";
import { newUid, type TeamUid } from "@millwright/ids";
import { call, CallerSigner, CallerVerifier, clientFor, inProcess } from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { aCaller, memoryLog, testDatabase } from "@millwright/testing";
import { allowedServices, composeScoring, migrationsDir, type Scoring, type ScoringOptions } from "../src/compose.ts";
import { FakeFactories, type FakeFactory } from "./fake-factories.ts";
import { FakeIdentity } from "./fake-identity.ts";
import { FakeOrchestrator } from "./fake-orchestrator.ts";

const gateway = await CallerSigner.create("gateway");
const factoriesSigner = await CallerSigner.create("factories");
const own = await CallerSigner.create("scoring");
const verifier = new CallerVerifier([gateway.jwk, factoriesSigner.jwk, own.jwk]);

export const TEAM = newUid<TeamUid>();
export const OTHER_TEAM = newUid<TeamUid>();
/** A Friday. */
export const NOW = new Date("2026-11-20T10:00:00.000Z");

const inTeam = (teamUid: TeamUid, verbs: readonly Verb[] = VERBS): Caller => ({
  ...aCaller({ teams: [{ teamUid, verbs }] }),
  principal: { type: "user", uid: newUid() },
});
/** Has all verbs in the team. */
export const OWNER = inTeam(TEAM);
export const VIEWER = inTeam(TEAM, ["factory.view", "run.view"]);
/** Has all verbs in another team. */
export const STRANGER = inTeam(OTHER_TEAM);
/** A service account of the team with all verbs. */
export const SERVICE_ACCOUNT: Caller = { ...inTeam(TEAM), principal: { type: "agent", uid: newUid() } };

export const LABELS = [
  { value: "good", score: 1 },
  { value: "poor", score: 0.4, description: "Needs work." },
  { value: "bad", score: 0 },
];
export const A_SCORER = {
  name: "Style",
  scopeMode: "all_agents",
  allowedClassifications: LABELS,
  threshold: 0.5,
  scoringPrompt: "Is the style good?",
  modelId: "judge-large",
} satisfies MessageInitShape<typeof scoring.ScorerSchema>;
export type ScorerInit = MessageInitShape<typeof scoring.ScorerSchema>;

export type World = Awaited<ReturnType<typeof startWorld>>;

/** Starts the service on its own database, with a clock that the test advances and in-memory upstream services. */
export async function startWorld(options: Partial<ScoringOptions> = {}) {
  const t = await testDatabase(migrationsDir);
  const [log, metrics, clock] = [memoryLog(), new Metrics(), manualClock(NOW)];
  const [orchestrator, identity, factories] = [new FakeOrchestrator(), new FakeIdentity(), new FakeFactories()];
  const serve = (service: string, routes: (router: ConnectRouter) => void, allow: Record<string, readonly string[]>) =>
    inProcess(routes, { service, verifier, log, metrics, allow });
  const replicas: Scoring[] = [];

  /** Composes another replica of this service on the same database. */
  function replica(more: Partial<ScoringOptions> = {}): Scoring {
    const made = composeScoring({
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
      },
      poolSize: 4,
      ...options,
      ...more,
    });
    replicas.push(made);
    return made;
  }

  const service = replica();
  /** Returns a client of this service, signed by the gateway or another service. */
  const clientOf = <S extends DescService>(contract: S, signer: CallerSigner = gateway): Client<S> =>
    clientFor(
      contract,
      serve("scoring", (router) => service.routes(router), allowedServices),
      { signer },
    );
  const scorers = clientOf(scoring.ScorerService);
  const rows = async <R = Record<string, unknown>>(text: string, params: unknown[] = []): Promise<R[]> =>
    (await t.database.sql.query<R>(text, params)).rows;

  return {
    t,
    log,
    clock,
    orchestrator,
    identity,
    factories,
    replica,
    service,
    scorers,
    rows,
    benchmarks: clientOf(scoring.BenchmarkService),
    definitionOwner: clientOf(definitions.DefinitionOwnerService, factoriesSigner),

    /** Adds a factory of the team. */
    aFactory: (factory: Partial<FakeFactory> = {}): string => factories.aFactory({ teamUid: TEAM, ...factory }).uid,
    /** Adds an agent to a factory of the team. */
    anAgent: (factoryUid: string, name?: string): string =>
      identity.anAgent({ teamUid: TEAM, factoryUid, ...(name !== undefined && { name }) }).uid,

    /** Creates a scorer in the given factory, or in a new one. */
    async aScorer(
      { factoryUid = factories.aFactory({ teamUid: TEAM }).uid, ...settings }: ScorerInit = {},
      caller: Caller = OWNER,
    ): Promise<scoring.Scorer> {
      const { scorer } = await scorers.createScorer({ scorer: { ...A_SCORER, factoryUid, ...settings } }, call(caller));
      return scorer!;
    },

    /** Returns the types of all events in order, such as "scorer.created". */
    async eventTypes(): Promise<string[]> {
      const found = await rows<{ type: string }>(
        "SELECT type FROM stream.event_log UNION ALL (SELECT type FROM stream.event_pending ORDER BY seq)",
      );
      return found.map(({ type }) => type.replace(/^millwright\.|\.v1$/g, ""));
    },

    /** Empties the database and the upstream services, and resets the clock to NOW. */
    async reset(): Promise<void> {
      await t.database.sql.query(
        `TRUNCATE scorers, attempts, finished_runs, self_improvements, self_improvement_runs, suites, suite_tasks, benchmark_runs, trials, trial_attempts, trial_scores,
                  definition_stages, definition_versions, idempotency_keys, stream.event_pending, stream.feed_cursors, stream.dead_lettered_events, stream.work_items CASCADE`,
      );
      for (const upstream of [orchestrator, identity, factories]) upstream.clear();
      clock.set(NOW);
    },

    async stop(): Promise<void> {
      for (const made of replicas) await made.stop();
      await t.close();
    },
  };
}
