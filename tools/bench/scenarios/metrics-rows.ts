import type { Database } from "@millwright/database";

/** Rows per statement, so that the work deferred to the end of a transaction stays small. */
const BATCH = 250_000;
/** Pull requests per statement: each takes a lock until its transaction ends. */
const LOCKS = 5_000;
const YEAR = "interval '365 days'";
const ENTRIES_PER_RUN = 10;
const RUNS_PER_TREE = 5;

export type FactoryOfTeam = { readonly factoryUid: string; readonly teamUid: string };

/**
 * Writes a year of a factory: `runs` runs in trees of five, with ten ledger entries each, and a pull request for every
 * second tree. People merge half as many in the same repositories. Triggers compute the sums. Fifty people start work
 * from two sources each; seven agents use four models.
 */
export async function writeYear(
  { sql }: Database,
  { factoryUid, teamUid }: FactoryOfTeam,
  runs: number,
): Promise<void> {
  for (let first = 0; first < runs; first += BATCH)
    await sql.query(RUNS, [factoryUid, teamUid, first, Math.min(first + BATCH, runs) - 1, runs]);
  const pullRequests = Math.floor(runs / RUNS_PER_TREE / 2);
  const entries = runs * ENTRIES_PER_RUN;
  for (let first = 0; first < entries; first += BATCH)
    await sql.query(ENTRIES, [factoryUid, teamUid, first, Math.min(first + BATCH, entries) - 1, runs]);
  await sql.query(PULL_REQUESTS, [factoryUid, teamUid, pullRequests, runs]);
  await sql.query(HOST_FACTS, [factoryUid]);
  await sql.query(HOST_FACTS_OF_PEOPLE, [factoryUid]);
  for (let first = 1; first <= pullRequests; first += LOCKS)
    await sql.query(PRODUCED, [factoryUid, first, first + LOCKS - 1]);
  await sql.query(SHARES, [factoryUid]);
  await sql.query("VACUUM (ANALYZE)");
}

/** Whether `writeYear` has completed for the factory: its shares are written last. */
export async function isYearWritten({ sql }: Database, { factoryUid }: FactoryOfTeam): Promise<boolean> {
  const { rows } = await sql.query("SELECT FROM pull_request_shares WHERE factory_uid = $1 LIMIT 1", [factoryUid]);
  return rows.length > 0;
}

/** SQL for the uid of the n-th run of this factory. */
const run = (n: string): string => `md5($1::text || ${n})::uuid`;
const tree = (n: string): string => `(${n}) / ${RUNS_PER_TREE}`;
const user = (n: string): string => `'user-' || (${tree(n)}) % 50`;
const source = (n: string): string =>
  `(ARRAY['API', 'SLACK', 'GITHUB', 'SCHEDULED_AGENT', 'WEB_APP'])[1 + ((${tree(n)}) % 50 + (${tree(n)}) / 50 % 2) % 5]`;
const agent = (n: string): string => `'agent-' || (${n}) % 7`;
const model = (n: string): string => `'model-' || (${n}) % 7 % 4`;
const at = (n: string, count: string): string => `now() - ${YEAR} + (${n})::double precision / (${count}) * ${YEAR}`;
/**
 * Returns SQL for an interval. Callers pass multiples of a prime modulo a limit, which are unordered, so that medians
 * require a sort.
 */
const seconds = (count: string): string => `(${count}) * interval '1 second'`;

const RUNS = `
  INSERT INTO run_facts (run_uid, team_uid, factory_uid, root_run_uid, parent_run_uid, conversation_uid, created_at, finished_at, version, state, source,
    agent_uid, agent_name, agent_type, model_id, harness, root_source, creator_type, creator_uid, person_follow_ups)
  SELECT ${run("n")}, $2::uuid, $1::uuid, ${run(`(${tree("n")}) * ${RUNS_PER_TREE}`)}, CASE WHEN n % ${RUNS_PER_TREE} > 0 THEN ${run(`(${tree("n")}) * ${RUNS_PER_TREE}`)} END,
         ${run("n")}, ${at("n", "$5::int")}, ${at("n", "$5::int")} + interval '5 minutes', 3, (ARRAY['SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED', 'FAILED', 'CANCELLED'])[1 + n % 5],
         CASE WHEN n % ${RUNS_PER_TREE} > 0 THEN 'ORCHESTRATION' ELSE ${source("n")} END,
         ${agent("n")}, 'Agent ' || n % 7, (ARRAY['FOREMAN', 'TRIAGE', 'SPEC', 'IMPLEMENT', 'REVIEW', 'VERIFY', 'CUSTOM'])[1 + n % 7], ${model("n")}, 'oz',
         ${source("n")}, 'user', ${user("n")}, 0
    FROM generate_series($3::int, $4::int) AS n`;

const ENTRIES = `
  INSERT INTO ledger_entries (source_key, team_uid, factory_uid, run_uid, component, kind, occurred_at, micros, price_version, quantity, owner_run_uid, owner_root_uid,
    source, creator_type, creator_uid, agent_uid, model_id)
  SELECT md5($1::text || 'entry' || e)::uuid, $2::uuid, $1::uuid, ${run("n")}, CASE WHEN e % ${ENTRIES_PER_RUN} = 0 THEN 'compute' ELSE 'inference' END,
         CASE WHEN e % ${ENTRIES_PER_RUN} = 0 THEN 'compute_interval' ELSE 'model_call' END, ${at("n", "$5::int")}, 100 + e % 5000, 1, '{}',
         ${run("n")}, ${run(`(${tree("n")}) * ${RUNS_PER_TREE}`)}, ${source("n")}, 'user', ${user("n")}, ${agent("n")}, ${model("n")}
    FROM generate_series($3::int, $4::int) AS e
   CROSS JOIN LATERAL (SELECT e / ${ENTRIES_PER_RUN}) AS of (n)`;

const PULL_REQUESTS = `
  INSERT INTO factory_pull_requests (factory_uid, url_key, team_uid, url, provider, repo_full_name, pr_number, title, author_login, state, has_host_facts, opened_at,
    first_human_review_at, merged_at, closed_at, updated_at, additions, deletions, changed_files, num_commits, history_complete, human_code_change, human_interactions, human_total,
    runs, kickoff_at, kickoff_run_uid, first_seen_at, inference_micros, compute_micros, platform_micros)
  SELECT $1::uuid, key, $2::uuid, 'https://' || key, 'GITHUB', 'acme/shop-' || p % 10, p, 'Change ' || p, 'millwright', CASE WHEN p % 4 < 3 THEN 'merged' ELSE 'open' END, true,
         seen, reviewed, CASE WHEN p % 4 < 3 THEN reviewed + ${seconds("p::bigint * 15485863 % 172800")} END, NULL, seen, p % 900, p % 300, 3, 2, p % 10 > 0, p % 3 = 0,
         '{"opened": 0, "code_push": 0, "review_approved": 1, "review_changes_requested": 0, "review_commented": 0, "comment": 1, "review_comment": 0, "pr_action": 0, "follow_up_message": 0, "total": 2}', 2,
         jsonb_build_array(jsonb_build_object('run_id', root, 'root_run_id', root, 'created_at', started)), started, root, seen,
         coalesce(costs.inference, 0), coalesce(costs.compute, 0), 0
    FROM generate_series(1, $3::int) AS p
   CROSS JOIN LATERAL (SELECT 'github.com/acme/shop-' || p % 10 || '/pull/' || p, ${run(`(p * 2 * ${RUNS_PER_TREE} - 2 * ${RUNS_PER_TREE})`)}, ${at(`(p - 1) * 2 * ${RUNS_PER_TREE}`, "$4::int")}) AS of (key, root, started)
   CROSS JOIN LATERAL (SELECT started + ${seconds("p::bigint * 7919 % 3600")}) AS first (seen)
   CROSS JOIN LATERAL (SELECT seen + ${seconds("p::bigint * 104729 % 86400")}) AS review (reviewed)
    LEFT JOIN LATERAL (
      SELECT sum(micros) FILTER (WHERE component = 'inference') AS inference, sum(micros) FILTER (WHERE component = 'compute') AS compute
        FROM tree_costs
       WHERE root_run_uid = root) AS costs ON true`;

/** Facts that the code host has reported about the factory's pull requests. */
const HOST_FACTS = `
  INSERT INTO pull_requests (team_uid, url_key, url, provider, repo_full_name, pr_number, title, author_login, state, opened_at, merged_at, updated_at,
    additions, deletions, changed_files, num_commits, state_at, measured_at)
  SELECT team_uid, url_key, url, provider, repo_full_name, pr_number, title, author_login, state, opened_at, merged_at, updated_at,
         additions, deletions, changed_files, num_commits, updated_at, updated_at
    FROM factory_pull_requests
   WHERE factory_uid = $1`;

/** A copy of every second pull request, with a person as its author. */
const HOST_FACTS_OF_PEOPLE = `
  INSERT INTO pull_requests (team_uid, url_key, url, provider, repo_full_name, pr_number, title, author_login, state, opened_at, merged_at, updated_at)
  SELECT team_uid, url_key || '0000000', url || '0000000', provider, repo_full_name, pr_number + 1000000, title, 'someone', 'merged', opened_at,
         opened_at + interval '1 day', updated_at
    FROM factory_pull_requests
   WHERE factory_uid = $1 AND pr_number % 2 = 0`;

const PRODUCED = `
  INSERT INTO produced_pull_requests (run_uid, url_key, team_uid, factory_uid, root_run_uid, url, provider, repo_full_name, pr_number, title, created_at, run_created_at)
  SELECT kickoff_run_uid, url_key, team_uid, factory_uid, kickoff_run_uid, url, provider, repo_full_name, pr_number, title, first_seen_at, kickoff_at
    FROM factory_pull_requests
   WHERE factory_uid = $1 AND pr_number BETWEEN $2 AND $3`;

const SHARES = `
  INSERT INTO pull_request_shares (factory_uid, url_key, root_run_uid, inference_micros, compute_micros, platform_micros)
  SELECT factory_uid, url_key, kickoff_run_uid, inference_micros, compute_micros, platform_micros
    FROM factory_pull_requests
   WHERE factory_uid = $1`;
