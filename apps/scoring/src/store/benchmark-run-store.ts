import type { Database } from "@millwright/database";
import type { BenchmarkRun, BenchmarkRunQuery, BenchmarkRunUid } from "../domain/benchmark-run.ts";
import { BENCHMARK_RUN_COLUMNS, findBenchmarkRunRow, toBenchmarkRun, type BenchmarkRunRow } from "./benchmark-run-rows.ts";

/** Benchmark runs; those of deleted suites are visible too. */
export function benchmarkRunStore(database: Database) {
  return {
    find: (uid: BenchmarkRunUid): Promise<BenchmarkRun | undefined> => findBenchmarkRunRow(database.sql, uid),

    /** Newest first, ties by uid. */
    async list({ factoryUid, suiteUid, states, after, limit }: BenchmarkRunQuery): Promise<BenchmarkRun[]> {
      const { rows } = await database.sql.query<BenchmarkRunRow>(
        `SELECT ${BENCHMARK_RUN_COLUMNS} FROM benchmark_runs b
          WHERE b.suite_uid = $1 AND b.factory_uid = $2 AND (cardinality($3::text[]) = 0 OR b.state = ANY ($3))
            AND ($4::timestamptz IS NULL OR (b.created_at, b.uid) < ($4::timestamptz, $5::uuid))
          ORDER BY b.created_at DESC, b.uid DESC LIMIT $6`,
        [suiteUid, factoryUid, states, after?.createdAt ?? null, after?.uid ?? null, limit],
      );
      return rows.map(toBenchmarkRun);
    },
  };
}
