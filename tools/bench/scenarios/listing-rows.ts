import type { Database } from "@millwright/database";

/** Runs per statement, so that the memory of a statement stays small. */
const BATCH = 100_000;
/** Number of newest runs, of which a tenth is active. No older run is: the time of a run is limited. */
const RECENT = 10_000;

/**
 * Writes the runs `first` to `last`, and artifacts of some, as a large team has them after years: values that most runs
 * have, values that few have, and creation times half a minute apart. The values are deterministic, so that the queries
 * of the benchmark are known to match.
 *
 * Many runs are written without triggers and constraints, and their indexes are built afterwards, which takes a tenth
 * of the time. The connection must be a superuser's, and `database` must use only one connection.
 */
export async function writeRuns(
  { sql }: Database,
  ownerUid: string,
  { first, last }: { readonly first: number; readonly last: number },
): Promise<void> {
  await sql.query(
    "CREATE OR REPLACE FUNCTION bench_any(n bigint, salt integer, most integer) RETURNS integer LANGUAGE sql IMMUTABLE RETURN (abs(hashint8extended(n, salt)) % most)::integer",
  );
  await sql.query(
    "CREATE OR REPLACE FUNCTION bench_skewed(n bigint, salt integer, most integer) RETURNS integer LANGUAGE sql IMMUTABLE RETURN floor(most * power((abs(hashint8extended(n, salt)) % 1000000) / 1000000.0, 3))::integer",
  );
  await sql.query("SET session_replication_role = replica"); // no triggers: neither foreign keys nor texts
  await sql.query("SET synchronous_commit = off");
  await sql.query("SET maintenance_work_mem = '1GB'");
  await sql.query(`UPDATE pg_index SET indisready = false WHERE ${OF_TABLES}`); // REINDEX makes them ready again
  for (let from = first; from <= last; from += BATCH) {
    const range = [from, Math.min(from + BATCH - 1, last)];
    await sql.query(RUNS, [ownerUid, ...range]);
    await sql.query(ARTIFACTS, range);
  }
  for (const table of ["artifacts", "run_texts", "runs"]) await sql.query(`REINDEX TABLE ${table}`);
  await sql.query("VACUUM (ANALYZE) runs, artifacts, run_texts");
}

/**
 * Returns whether the run `n` has been written. Throws an Error if a call of `writeRuns` has not completed.
 */
export async function isRunWritten({ sql }: Database, n: number): Promise<boolean> {
  const { rows } = await sql.query<{ complete: boolean; written: boolean }>(
    `SELECT NOT EXISTS (SELECT FROM pg_index WHERE NOT indisready AND ${OF_TABLES}) AS complete,
            EXISTS (SELECT FROM runs WHERE uid = md5('run' || $1::bigint)::uuid) AS written`,
    [n],
  );
  if (!rows[0]!.complete) throw new Error("The rows were not written completely. Delete the directory of --data.");
  return rows[0]!.written;
}

/** SQL condition for the indexes of the written tables. */
const OF_TABLES = "indrelid IN ('runs'::regclass, 'run_texts'::regclass, 'artifacts'::regclass)";

const RUNS = `
WITH new AS (
INSERT INTO runs (uid, root_run_uid, parent_run_uid, depth, owner_type, owner_uid, creator_type, creator_uid, executor_uid, factory_uid, environment_uid, title, state, prompt, mode, interactive,
                  source, execution_location, conversation_uid, schedule, config_name, model_id, skill_spec, agent_config, frozen, metadata, created_at, updated_at)
SELECT md5('run' || n)::uuid, md5('run' || root)::uuid, CASE WHEN root <> n THEN md5('run' || root)::uuid END, CASE WHEN root <> n THEN 1 ELSE 0 END, 'team', $1::uuid,
       'user', md5('creator' || bench_skewed(n, 2, 500))::uuid, md5('executor' || bench_skewed(n, 3, 300))::uuid,
       CASE WHEN bench_any(n, 4, 10) < 6 THEN md5('factory' || bench_skewed(n, 5, 40))::uuid END,
       CASE WHEN bench_any(n, 6, 10) < 7 THEN substr(md5('environment' || bench_skewed(n, 7, 200)), 1, 22) END,
       (ARRAY['Fix', 'Add', 'Remove', 'Rename', 'Test', 'Review'])[1 + bench_any(n, 8, 6)] || ' the word' || bench_skewed(n, 9, 2000) || ' of part' || bench_skewed(n, 10, 500),
       CASE WHEN n <= ${RECENT} AND s < 500 THEN 'QUEUED' WHEN n <= ${RECENT} AND s < 1000 THEN 'INPROGRESS' WHEN s < 8000 THEN 'SUCCEEDED' WHEN s < 8800 THEN 'FAILED' WHEN s < 9300 THEN 'CANCELLED' WHEN s < 9750 THEN 'ERROR' ELSE 'BLOCKED' END,
       'Please check word' || bench_skewed(n, 11, 2000) || ' in file' || bench_any(n, 12, 100000) || ' and do there what is to be done. ' || repeat('More of the same text. ', 5), 'normal', false,
       (ARRAY['API', 'SCHEDULED_AGENT', 'WEB_APP', 'CLI', 'ORCHESTRATION', 'GITHUB_WEBHOOK', 'SLACK', 'LINEAR', 'JIRA', 'LOCAL'])[1 + bench_skewed(n, 13, 10)],
       CASE WHEN bench_any(n, 14, 100) < 3 THEN 'LOCAL' ELSE 'REMOTE' END, md5('conversation' || n)::uuid,
       CASE WHEN bench_any(n, 15, 10) = 0 THEN jsonb_build_object('schedule_id', md5('schedule' || bench_skewed(n, 16, 1000))::uuid) END,
       'agent' || bench_skewed(n, 17, 200), 'model' || bench_skewed(n, 18, 12),
       CASE WHEN bench_any(n, 19, 10) < 4 THEN 'acme/shop' || bench_skewed(n, 20, 20) || ':skills/s' || bench_skewed(n, 21, 300) || '/SKILL.md' END,
       '{"name": "agent"}', '{}', jsonb_build_object('ticket_id', 'T-' || n, 'squad', 'squad' || bench_skewed(n, 22, 20)),
       now() - n * interval '30 seconds', now() - n * interval '30 seconds' + bench_any(n, 23, 3600) * interval '1 second' + CASE WHEN bench_any(n, 24, 100) = 0 THEN interval '3 days' ELSE interval '0' END
  FROM (SELECT n, n - CASE WHEN n % 10 = 0 THEN 5 ELSE 0 END AS root, bench_any(n, 1, 10000) AS s FROM generate_series($2::bigint, $3::bigint) n) g
RETURNING uid, owner_uid, created_at, title, skill_spec, prompt)
INSERT INTO run_texts (run_uid, owner_uid, created_at, title, skill_spec, text)
SELECT uid, owner_uid, created_at, title, skill_spec, run_text(title, skill_spec, prompt)
  FROM new`;

const ARTIFACTS = `
INSERT INTO artifacts (uid, run_uid, client_artifact_id, execution_id, artifact_type, data, committed_at)
SELECT md5('artifact' || n)::uuid, md5('run' || n)::uuid, 'a', n, CASE WHEN t < 650 THEN 'PULL_REQUEST' WHEN t < 880 THEN 'FILE' WHEN t < 970 THEN 'SCREENSHOT' WHEN t < 995 THEN 'PLAN' ELSE 'EXTERNAL_REFERENCE' END, '{}', now()
  FROM (SELECT n, bench_any(n, 31, 1000) AS t FROM generate_series($1::bigint, $2::bigint) n WHERE bench_any(n, 30, 100) < 45) g`;
