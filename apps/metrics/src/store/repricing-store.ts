import type { Sql } from "@millwright/database";
import { NIL_UUID } from "@millwright/ids";
import type { PricedRun } from "../domain/ledger-entry.ts";

export type RecordedRun = PricedRun & { readonly teamUid: string };

export type RepricedRuns = {
  /** The last run that was checked; undefined: there are no more. */
  readonly lastRunUid: string | undefined;
  /** Of these, the ones that the version affects. */
  readonly runs: readonly { readonly runUid: string; readonly factoryUid: string }[];
};

type RunRow = {
  run_uid: string;
  team_uid: string;
  factory_uid: string;
  root_run_uid: string;
  created_at: Date;
  root_source: string;
  creator_type: string;
  creator_uid: string;
  agent_uid: string;
  model_id: string;
  intervals: IntervalRow[];
};
type IntervalRow = {
  execution_id: string;
  attempt: number;
  started_at: string;
  seconds: number;
  vcpus: number;
  memory_gb: number;
};

/** Progress of re-pricings, and the recorded use of the runs that they affect. */
export const repricingStore = {
  /** Begins a re-pricing. */
  async start(tx: Sql, version: number): Promise<void> {
    await tx.query("INSERT INTO repricings (version) VALUES ($1)", [version]);
  },

  /** Locks a re-pricing in progress and returns after which run it continues; undefined: it is complete. */
  async lock(tx: Sql, version: number): Promise<{ readonly afterRunUid: string | undefined } | undefined> {
    const { rows } = await tx.query<{ after_run_uid: string | null }>(
      "SELECT after_run_uid FROM repricings WHERE version = $1 AND completed_at IS NULL FOR UPDATE",
      [version],
    );
    return rows[0] && { afterRunUid: rows[0].after_run_uid ?? undefined };
  },

  /** Returns the next runs, and which of them were created or have used compute since the version is in force. */
  async nextRuns(tx: Sql, version: number, afterRunUid: string | undefined, limit: number): Promise<RepricedRuns> {
    const { rows } = await tx.query<{ run_uid: string; factory_uid: string; is_affected: boolean }>(
      `SELECT f.run_uid, f.factory_uid,
              f.created_at >= p.effective_from
              OR EXISTS (SELECT FROM ledger_entries l
                          WHERE l.run_uid = f.run_uid
                            AND l.kind = 'compute_interval'
                            AND l.occurred_at >= p.effective_from) AS is_affected
         FROM (SELECT run_uid, factory_uid, created_at
                 FROM run_facts
                WHERE run_uid > coalesce($2::uuid, '${NIL_UUID}')
                ORDER BY run_uid
                LIMIT $3) f
         JOIN compute_prices p ON p.version = $1
        ORDER BY f.run_uid`,
      [version, afterRunUid ?? null, limit],
    );
    const affected = rows.filter(({ is_affected }) => is_affected);
    return {
      lastRunUid: rows.at(-1)?.run_uid,
      runs: affected.map(({ run_uid, factory_uid }) => ({ runUid: run_uid, factoryUid: factory_uid })),
    };
  },

  /** Returns what has been recorded of runs and is priced by the price book. */
  async recordedRuns(tx: Sql, runUids: readonly string[]): Promise<RecordedRun[]> {
    const { rows } = await tx.query<RunRow>(
      `SELECT f.run_uid, f.team_uid, f.factory_uid, f.root_run_uid, f.created_at, f.root_source, f.creator_type,
              f.creator_uid, f.agent_uid, f.model_id, used.intervals
         FROM run_facts f
        CROSS JOIN LATERAL (SELECT coalesce(json_agg(quantity || jsonb_build_object('started_at', occurred_at)), '[]') AS intervals
                              FROM ledger_entries
                             WHERE run_uid = f.run_uid AND kind = 'compute_interval' AND quantity ? 'execution_id') used
        WHERE f.run_uid = ANY($1::uuid[])`,
      [runUids],
    );
    return rows.map(toRecordedRun);
  },

  /** Stores the progress of a re-pricing. */
  async advance(tx: Sql, version: number, afterRunUid: string, runCount: number): Promise<void> {
    await tx.query("UPDATE repricings SET after_run_uid = $2, run_count = run_count + $3 WHERE version = $1", [
      version,
      afterRunUid,
      runCount,
    ]);
  },

  /** Ends a re-pricing. */
  async complete(tx: Sql, version: number, now: Date): Promise<void> {
    await tx.query("UPDATE repricings SET completed_at = $2 WHERE version = $1", [version, now]);
  },
};

const toRecordedRun = (row: RunRow): RecordedRun => ({
  uid: row.run_uid,
  teamUid: row.team_uid,
  createdAt: row.created_at,
  costOwner: {
    runUid: row.run_uid,
    rootRunUid: row.root_run_uid,
    factoryUid: row.factory_uid,
    source: row.root_source,
    creatorType: row.creator_type,
    creatorUid: row.creator_uid,
    agentUid: row.agent_uid,
    modelId: row.model_id,
  },
  computeIntervals: row.intervals.map((interval) => {
    const startedAt = new Date(interval.started_at);
    return {
      executionId: interval.execution_id,
      attempt: interval.attempt,
      startedAt,
      endedAt: new Date(startedAt.getTime() + Math.round(interval.seconds * 1000)),
      vcpus: interval.vcpus,
      memoryGb: interval.memory_gb,
    };
  }),
});
