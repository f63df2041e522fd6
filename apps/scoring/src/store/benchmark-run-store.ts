import type { Database } from "@millwright/database";
import type { BenchmarkRun, BenchmarkRunQuery, BenchmarkRunUid } from "../domain/benchmark-run.ts";
import {
  BENCHMARK_RUN_COLUMNS,
  findBenchmarkRunRow,
  toBenchmarkRun,
  type BenchmarkRunRow,
} from "./benchmark-run-rows.ts";

/** Columns of `BenchmarkRunRow` without the large texts of manifests, which lists do not return. */
const OUTLINE_COLUMNS = BENCHMARK_RUN_COLUMNS.replace(
  "b.manifest,",
  `
  jsonb_build_object('identifiers', b.manifest->'identifiers', 'content', (b.manifest->'content') || jsonb_build_object('agents', '[]'::jsonb, 'tasks', (
    SELECT jsonb_agg(t - '{prompt,success_criteria,rule,repositories}'::text[] ORDER BY n)
      FROM jsonb_array_elements(b.manifest->'content'->'tasks') WITH ORDINALITY AS e (t, n)))) AS manifest,`,
);

/** Reads benchmark runs, including those of deleted suites. */
export function benchmarkRunStore(database: Database) {
  return {
    find: (uid: BenchmarkRunUid): Promise<BenchmarkRun | undefined> => findBenchmarkRunRow(database.sql, uid),

    /** Returns a page of benchmark runs, newest first, ties ordered by uid. */
    async list({ factoryUid, suiteUid, states, after, limit, isFull }: BenchmarkRunQuery): Promise<BenchmarkRun[]> {
      const { rows } = await database.sql.query<BenchmarkRunRow>(
        `SELECT ${isFull ? BENCHMARK_RUN_COLUMNS : OUTLINE_COLUMNS} FROM benchmark_runs b
          WHERE b.suite_uid = $1 AND b.factory_uid = $2 AND (cardinality($3::text[]) = 0 OR b.state = ANY ($3))
            AND ($4::timestamptz IS NULL OR (b.created_at, b.uid) < ($4::timestamptz, $5::uuid))
          ORDER BY b.created_at DESC, b.uid DESC LIMIT $6`,
        [suiteUid, factoryUid, states, after?.createdAt ?? null, after?.uid ?? null, limit],
      );
      return rows.map(toBenchmarkRun);
    },
  };
}

export type BenchmarkRunStore = ReturnType<typeof benchmarkRunStore>;
