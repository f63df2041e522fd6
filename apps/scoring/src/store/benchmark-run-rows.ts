import type { Sql } from "@millwright/database";
import { as } from "@millwright/ids";
import type { BenchmarkRun, BenchmarkRunState, BenchmarkRunUid } from "../domain/benchmark-run.ts";
import type { Manifest } from "../domain/manifest.ts";
import type { SuiteUid } from "../domain/suite.ts";

export type BenchmarkRunRow = {
  uid: string;
  suite_uid: string;
  suite_name: string;
  suite_version: number;
  factory_uid: string;
  team_uid: string;
  state: BenchmarkRunState;
  manifest: Manifest;
  manifest_hash: string;
  repetition_count: number;
  agent_uid: string;
  agent_name: string;
  parallelism: number;
  replayed_run_uid: string | null;
  incomplete_reason: string | null;
  creator_type: string;
  creator_uid: string;
  created_at: Date;
  updated_at: Date;
  started_at: Date | null;
  completed_at: Date | null;
};

/** Columns of `BenchmarkRunRow`, for the table alias `b`. */
export const BENCHMARK_RUN_COLUMNS = `b.uid, b.suite_uid, b.suite_name, b.suite_version, b.factory_uid, b.team_uid, b.state, b.manifest, b.manifest_hash,
  b.repetition_count, b.agent_uid, b.agent_name, b.parallelism, b.replayed_run_uid, b.incomplete_reason, b.creator_type, b.creator_uid, b.created_at, b.updated_at,
  b.started_at, b.completed_at`;

export const toBenchmarkRun = (row: BenchmarkRunRow): BenchmarkRun => ({
  uid: as<BenchmarkRunUid>(row.uid),
  suiteUid: as<SuiteUid>(row.suite_uid),
  suiteName: row.suite_name,
  suiteVersion: row.suite_version,
  factoryUid: row.factory_uid,
  teamUid: row.team_uid,
  state: row.state,
  manifest: row.manifest,
  manifestHash: row.manifest_hash,
  repetitionCount: row.repetition_count,
  agentUid: row.agent_uid,
  agentName: row.agent_name,
  parallelism: row.parallelism,
  replayedRunUid: row.replayed_run_uid,
  incompleteReason: row.incomplete_reason,
  creator: { type: row.creator_type, uid: row.creator_uid },
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  startedAt: row.started_at,
  completedAt: row.completed_at,
});

/** Returns a benchmark run. Benchmark runs of deleted suites remain readable. */
export async function findBenchmarkRunRow(sql: Sql, uid: BenchmarkRunUid): Promise<BenchmarkRun | undefined> {
  const { rows } = await sql.query<BenchmarkRunRow>(
    `SELECT ${BENCHMARK_RUN_COLUMNS} FROM benchmark_runs b WHERE b.uid = $1`,
    [uid],
  );
  return rows.map(toBenchmarkRun)[0];
}
