import { manifestHash, type Manifest } from "@millwright/scoring/compose";
import type { Database } from "@millwright/database";
import { newUid } from "@millwright/ids";

const TASKS = 50;
const CONFIGURATIONS = 4;
const REPETITIONS = 5;
/** Number of scores of one benchmark run. */
const SCORES_PER_RUN = TASKS * CONFIGURATIONS * REPETITIONS * 4;
/** Attempts per statement, so that the work deferred to the end of a transaction stays small. */
const BATCH = 100_000;

export type ScoringRows = {
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly suiteUid: string;
  readonly scorerUids: readonly string[];
};

/**
 * Writes a suite's finished benchmark runs, and attempts of its four scorers, with `scores` scores each. Returns the
 * uids of up to ten benchmark runs.
 */
export async function writeScores({ sql }: Database, rows: ScoringRows, scores: number): Promise<string[]> {
  const manifest = manifestOf(rows);
  const hash = manifestHash(manifest.content);
  const runUids = Array.from({ length: Math.ceil(scores / SCORES_PER_RUN) }, () => newUid());
  for (const runUid of runUids) {
    await sql.query(RUN, [
      runUid,
      rows.suiteUid,
      rows.factoryUid,
      rows.teamUid,
      JSON.stringify(manifest),
      hash,
      REPETITIONS,
    ]);
    await sql.query(TRIALS, [
      runUid,
      manifest.identifiers.tasks.map(({ uid }) => uid),
      manifest.identifiers.configurations.map(({ uid }) => uid),
      REPETITIONS,
    ]);
    await sql.query(
      "INSERT INTO trial_attempts (trial_uid, attempt_number, run_uid, state, started_at) SELECT uid, 1, run_uid, 'succeeded', now() FROM trials WHERE benchmark_run_uid = $1",
      [runUid],
    );
    await sql.query(TRIAL_SCORES, [runUid, rows.scorerUids]);
  }
  for (let first = 1; first <= scores; first += BATCH)
    await sql.query(ATTEMPTS, [
      rows.scorerUids,
      rows.factoryUid,
      rows.teamUid,
      first,
      Math.min(first + BATCH - 1, scores),
    ]);
  await sql.query("VACUUM (ANALYZE) benchmark_runs, trials, trial_attempts, trial_scores, attempts");
  return runUids.slice(0, 10);
}

function manifestOf({ factoryUid, suiteUid, scorerUids }: ScoringRows): Manifest {
  const uids = (count: number): string[] => Array.from({ length: count }, () => newUid());
  const labels = [
    { value: "good", score: 1 },
    { value: "bad", score: 0 },
  ];
  return {
    content: {
      format: "millwright.benchmark.v1",
      runners: [],
      repetition_count: REPETITIONS,
      agents: [{ name: "coder", layers: [], environment: null, skills: [] }],
      tasks: uids(TASKS).map((_uid, n) => ({
        title: `Task ${n}`,
        prompt: "Read the issue and change what it asks for. ".repeat(20),
        success_criteria: "The tests pass.",
        rule: null,
        tags: [`tag${n % 5}`],
        labels: {},
        repositories: [],
      })),
      configurations: uids(CONFIGURATIONS).map((_uid, n) => ({
        role: n === 0 ? ("baseline" as const) : ("candidate" as const),
        display_name: `configuration ${n}`,
        harness: "",
        model: "",
        runner: "",
        harness_auth_secret_name: null,
        agent_configs: [],
      })),
      scorers: scorerUids.map((_uid, n) => ({
        name: `scorer ${n}`,
        kind: n === 0 ? "benchmark_task_correctness" : "user",
        labels,
        threshold: 0.5,
        scoring_prompt: "",
        model_id: "rule",
        rule: null,
        agent_config: null,
      })),
    },
    identifiers: {
      factory_uid: factoryUid,
      suite_uid: suiteUid,
      suite_version: 1,
      agents: [],
      scorer_selection: [],
      tasks: uids(TASKS).map((uid, n) => ({ uid, id: n + 1, source_run_uid: null })),
      configurations: uids(CONFIGURATIONS).map((uid, n) => ({ uid, id: n + 1, runner_uid: "" })),
      scorers: scorerUids.map((uid, n) => ({ uid, id: n + 1, version: 1 })),
    },
  };
}

const RUN = `
INSERT INTO benchmark_runs (uid, suite_uid, suite_name, suite_version, factory_uid, team_uid, state, manifest, manifest_hash, repetition_count, agent_uid, agent_name, parallelism,
                            creator_type, creator_uid, created_at, updated_at, started_at, completed_at)
VALUES ($1, $2, 'Bench', 1, $3, $4, 'completed', $5::jsonb, $6, $7, $3, 'coder', 4, 'user', 'bench', now(), now(), now(), now())`;

const TRIALS = `
INSERT INTO trials (uid, benchmark_run_uid, position, configuration_uid, task_uid, rep_index, state, run_uid, attempt_count, cost_micros, total_tokens, wall_time_ms, created_at, started_at,
                    completed_at, measured_at)
SELECT gen_random_uuid(), $1, row_number() OVER (ORDER BY t.n, c.n, r) - 1, c.uid, t.uid, r, 'succeeded', gen_random_uuid(), 1, 12000, 9000, 65000, now(), now(), now(), now()
  FROM unnest($2::uuid[]) WITH ORDINALITY AS t (uid, n), unnest($3::uuid[]) WITH ORDINALITY AS c (uid, n), generate_series(0, $4::integer - 1) r`;

const TRIAL_SCORES = `
INSERT INTO trial_scores (trial_uid, scorer_uid, state, classification, score, cost_micros)
SELECT t.uid, s.uid, 'scored', CASE WHEN p THEN 'good' ELSE 'bad' END, p::integer, 500
  FROM trials t, unnest($2::uuid[]) AS s (uid), LATERAL (SELECT hashtext(t.uid::text || s.uid::text) % 3 <> 0 AS p) x WHERE t.benchmark_run_uid = $1`;

/** Attempts at intervals of 7 seconds into the past. */
const ATTEMPTS = `
INSERT INTO attempts (uid, scorer_uid, run_uid, factory_uid, team_uid, title, trigger_source, requester_type, requester_uid, state, is_current, config, run_version, classification, score, reason,
                      reason_status, cost_micros, attempted_at, scored_at)
SELECT gen_random_uuid(), ($1::uuid[])[1 + n % cardinality($1::uuid[])], gen_random_uuid(), $2, $3, 'Run ' || n, 'automatic', 'user', 'bench', 'scored', true, '{"threshold": 0.5}', 1,
       CASE WHEN n % 3 = 0 THEN 'bad' ELSE 'good' END, CASE WHEN n % 3 = 0 THEN 0 ELSE 1 END, 'The change does what the issue asks for.', 'available', 500, at, at
  FROM generate_series($4::bigint, $5::bigint) n, LATERAL (SELECT now() - n * interval '7 seconds' AS at) x`;
