import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Caller } from "@millwright/caller";
import { isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call } from "@millwright/rpc";
import { aCaller } from "@millwright/testing";
import {
  aRecord,
  aRun,
  storeHostFacts,
  storeRecords,
  storeRuns,
  type HostRow,
  type RecordRow,
  type RunRow,
} from "./run-rows.ts";
import { startWorld, TEAM } from "./setup.ts";

/** May view factories of the team, nothing else. */
export const VIEWER: Caller = aCaller({ teams: [{ teamUid: TEAM, verbs: ["factory.view"] }] });

/** Dates as texts; absent ones have defaults. */
export type Query = { factoryUid: string; start?: string | Date; end?: string | Date; by?: string };

const timestamp = (at: string | Date | undefined) => (at ? timestampFromDate(new Date(at)) : undefined);
const rangeOf = ({ factoryUid, start, end, by }: Query) => {
  const [startDate, endDate] = [timestamp(start), timestamp(end)];
  return { factoryUid, startDate, endDate, groupByPeriod: by ?? "" };
};

/** Returns everything that a caller learns of a refusal. */
export async function refusalOf(answer: Promise<unknown>): Promise<unknown> {
  const error = await answer.catch((failure: unknown) => failure);
  if (!isDomainError(error)) throw new Error("It was not refused.", { cause: error });
  const { kind, reason, code, message, metadata, details } = error;
  return { kind, reason, code, message, metadata, details };
}

export type RunWorld = Awaited<ReturnType<typeof startRunWorld>>;

/** The service over rows that tests store themselves, without ingestion. */
export async function startRunWorld() {
  const world = await startWorld();
  const { sql } = world.t.database;
  return {
    sql,
    database: world.t.database,
    /** Returns a new factory of the team. */
    aFactory: (repositories: readonly string[] = []): string =>
      world.aFactory({
        repositories: repositories.map((name) => ({ owner: name.split("/")[0]!, repo: name.split("/")[1]! })),
      }),
    metrics: (query: Query, caller = VIEWER) => world.metrics.getMetrics({ range: rangeOf(query) }, call(caller)),
    breakdown: (query: Query, groupBy: string, caller = VIEWER) =>
      world.metrics.getRunBreakdown({ range: rangeOf(query), groupBy }, call(caller)),
    /** Stores a run of the factory. */
    async run(factoryUid: string, createdAt: string, row: Partial<RunRow> = {}): Promise<RunRow> {
      const run = aRun({ team_uid: TEAM, factory_uid: factoryUid, created_at: new Date(createdAt), ...row });
      await storeRuns(sql, [run]);
      return run;
    },
    /**
     * Stores a record of a pull request that runs of the factory produced, and the merge that the code host has
     * reported.
     */
    async record(factoryUid: string, at: string, row: Partial<RecordRow> = {}): Promise<RecordRow> {
      const record = aRecord({ team_uid: TEAM, factory_uid: factoryUid, at: new Date(at), ...row });
      await storeRecords(sql, [record]);
      const { team_uid, url_key, repo_full_name, state, opened_at, merged_at } = record;
      if (record.has_host_facts && merged_at)
        await storeHostFacts(sql, [{ team_uid, url_key, repo_full_name, state, opened_at, merged_at }]);
      return record;
    },
    /** Stores a merge in a repository of the team. */
    async merge(repository: string, mergedAt: string, row: Partial<HostRow> = {}): Promise<void> {
      const url_key = `github.com/${repository.toLowerCase()}/pull/${newUid()}`;
      const merged = {
        team_uid: TEAM,
        url_key,
        repo_full_name: repository,
        state: "merged",
        opened_at: null,
        merged_at: new Date(mergedAt),
      };
      await storeHostFacts(sql, [{ ...merged, ...row }]);
    },
    stop: () => world.stop(),
  };
}
