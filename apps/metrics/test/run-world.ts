import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { isMember, VERBS, type Caller, type Verb } from "@millwright/caller";
import { manualClock } from "@millwright/clock";
import { metrics } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { newUid, type TeamUid } from "@millwright/ids";
import { call, CallerSigner, CallerVerifier, clientFor, inProcess } from "@millwright/rpc";
import { Metrics } from "@millwright/telemetry";
import { aCaller, memoryLog, testDatabase } from "@millwright/testing";
import { migrationsDir } from "../src/compose.ts";
import { runMethods } from "../src/rpc/run-methods.ts";
import { runAnswerStore } from "../src/store/run-answer-store.ts";
import type { FactoryView } from "../src/usecases/resolve-scope.ts";
import { aRecord, aRun, storeHostFacts, storeRecords, storeRuns, type HostRow, type RecordRow, type RunRow } from "./run-rows.ts";

export const TEAM = newUid<TeamUid>();
/** A Friday. */
export const NOW = new Date("2026-11-20T10:00:00.000Z");

const inTeam = (teamUid: TeamUid, verbs: readonly Verb[]): Caller => aCaller({ teams: [{ teamUid, verbs }] });
export const VIEWER = inTeam(TEAM, ["factory.view"]);
/** A member who may not view factories. */
export const BLIND = inTeam(TEAM, ["run.view"]);
/** May do everything in another team. */
export const STRANGER = inTeam(newUid<TeamUid>(), VERBS);

/** Dates as texts; what is missing keeps its default. */
export type Query = { factoryUid: string; start?: string | Date; end?: string | Date; by?: string };

const gateway = await CallerSigner.create("gateway");
const timestamp = (at: string | Date | undefined) => at && timestampFromDate(new Date(at));
const rangeOf = ({ factoryUid, start, end, by }: Query) => {
  const [startDate, endDate] = [timestamp(start), timestamp(end)];
  return { factoryUid, ...(startDate && { startDate }), ...(endDate && { endDate }), groupByPeriod: by ?? "" };
};

export type RunWorld = Awaited<ReturnType<typeof startRunWorld>>;

/** The run methods of the service over rows that tests store themselves. */
export async function startRunWorld() {
  const t = await testDatabase(migrationsDir);
  const { sql } = t.database;
  const clock = manualClock(NOW);
  const factories = new Map<string, FactoryView>();
  const deps = {
    ...runAnswerStore(t.database),
    clock,
    asOf: async () => clock.now(),
    factories: {
      async get(caller: Caller, uid: string): Promise<FactoryView> {
        const factory = factories.get(uid);
        if (!factory || !isMember(caller, factory.teamUid)) throw notFound("factory");
        return factory;
      },
    },
  };
  const options = { service: "metrics", verifier: new CallerVerifier([gateway.jwk]), log: memoryLog(), metrics: new Metrics(), allow: {} };
  const client = clientFor(metrics.MetricsService, inProcess((router) => router.service(metrics.MetricsService, runMethods(deps)), options), { signer: gateway });

  return {
    t, clock, sql,
    /** Returns a new factory of the team. */
    aFactory(repositories: readonly string[] = [], teamUid: string = TEAM): string {
      const uid = newUid();
      factories.set(uid, { uid, teamUid, repositories });
      return uid;
    },
    metrics: (query: Query, caller: Caller = VIEWER) => client.getMetrics({ range: rangeOf(query) }, call(caller)),
    breakdown: (query: Query, groupBy: string, caller: Caller = VIEWER) => client.getRunBreakdown({ range: rangeOf(query), groupBy }, call(caller)),
    /** Stores a run of the factory. */
    async run(factoryUid: string, createdAt: string, row: Partial<RunRow> = {}): Promise<RunRow> {
      const run = aRun({ team_uid: TEAM, factory_uid: factoryUid, created_at: new Date(createdAt), ...row });
      await storeRuns(sql, [run]);
      return run;
    },
    /** Stores a record of a pull request that runs of the factory produced. */
    async record(factoryUid: string, at: string, row: Partial<RecordRow> = {}): Promise<RecordRow> {
      const record = aRecord({ team_uid: TEAM, factory_uid: factoryUid, at: new Date(at), ...row });
      await storeRecords(sql, [record]);
      return record;
    },
    /** Stores a merge in a repository of the team. */
    async merge(repository: string, mergedAt: string, row: Partial<HostRow> = {}): Promise<void> {
      const url_key = `github.com/${repository.toLowerCase()}/pull/${newUid()}`;
      const merged = { team_uid: TEAM, url_key, repo_full_name: repository, state: "merged", opened_at: null, merged_at: new Date(mergedAt) };
      await storeHostFacts(sql, [{ ...merged, ...row }]);
    },
    stop: () => t.close(),
  };
}
