import type { Sql } from "@millwright/database";
import { newUid } from "@millwright/ids";

export type RunRow = {
  run_uid: string;
  team_uid: string;
  factory_uid: string;
  root_run_uid: string;
  parent_run_uid: string | null;
  conversation_uid: string;
  created_at: Date;
  version: number;
  state: string;
  source: string;
  agent_uid: string;
  agent_name: string;
  agent_type: string;
  model_id: string;
  harness: string;
  root_source: string;
  creator_type: string;
  creator_uid: string;
  person_follow_ups: number;
};

/** A pull request as a code host reports it. */
export type HostRow = {
  team_uid: string;
  url_key: string;
  repo_full_name: string;
  state: string;
  opened_at: Date | null;
  merged_at: Date | null;
  additions?: number | null;
  deletions?: number | null;
};

/** A pull request that a run has named. */
export type ProducedRow = {
  run_uid: string;
  url_key: string;
  team_uid: string;
  factory_uid: string;
  root_run_uid: string;
  provider: string;
  repo_full_name: string;
  created_at: Date;
  run_created_at: Date;
};

export type ActivityRow = {
  team_uid: string;
  url_key: string;
  activity_key: string;
  kind: string;
  is_person: boolean;
  is_dismissed: boolean;
  occurred_at: Date;
};

/** The factory's record of a pull request. */
export type RecordRow = HostRow & {
  factory_uid: string;
  has_host_facts: boolean;
  first_human_review_at: Date | null;
  additions: number | null;
  deletions: number | null;
  history_complete: boolean;
  human_code_change: boolean | null;
  human_total: number | null;
  kickoff_at: Date;
  first_seen_at: Date;
};

/** A root run of a known agent, model and harness. */
export function aRun(row: Partial<RunRow> & Pick<RunRow, "team_uid" | "factory_uid" | "created_at">): RunRow {
  const run_uid = row.run_uid ?? newUid();
  return {
    run_uid,
    root_run_uid: run_uid,
    parent_run_uid: null,
    conversation_uid: newUid(),
    version: 1,
    state: "SUCCEEDED",
    source: "API",
    agent_uid: newUid(),
    agent_name: "Builder",
    agent_type: "IMPLEMENT",
    model_id: "model-1",
    harness: "claude",
    root_source: row.source ?? "API",
    creator_type: "user",
    creator_uid: newUid(),
    person_follow_ups: 0,
    ...row,
  };
}

/**
 * An open pull request whose whole history is known: opened and first seen at `opened_at`, an hour after its kickoff.
 */
export function aRecord(
  row: Partial<RecordRow> & Pick<RecordRow, "team_uid" | "factory_uid"> & { at: Date },
): RecordRow {
  const { at, ...given } = row;
  return {
    url_key: `github.com/acme/shop/pull/${newUid()}`,
    repo_full_name: "acme/shop",
    state: row.merged_at ? "merged" : "open",
    opened_at: at,
    merged_at: null,
    has_host_facts: true,
    first_human_review_at: null,
    additions: 10,
    deletions: 5,
    history_complete: true,
    human_code_change: false,
    human_total: 0,
    kickoff_at: new Date(at.getTime() - 3_600_000),
    first_seen_at: at,
    ...given,
  };
}

/** Stores runs as the refresher does: a newer version replaces an older one. A run may occur once. */
export async function storeRuns(sql: Sql, runs: readonly RunRow[]): Promise<void> {
  await sql.query(
    `INSERT INTO run_facts AS r SELECT * FROM json_populate_recordset(NULL::run_facts, $1)
     ON CONFLICT (run_uid) DO UPDATE
        SET version = excluded.version,
            state = excluded.state,
            person_follow_ups = excluded.person_follow_ups
      WHERE r.version < excluded.version`,
    [JSON.stringify(runs)],
  );
}

/** Stores what code hosts report of pull requests. */
export async function storeHostFacts(sql: Sql, rows: readonly HostRow[]): Promise<void> {
  const common = { provider: "GITHUB", pr_number: 1, updated_at: new Date(0) };
  await sql.query(
    `INSERT INTO pull_requests SELECT * FROM json_populate_recordset(NULL::pull_requests, $1) ON CONFLICT DO NOTHING`,
    [JSON.stringify(rows.map((row) => ({ ...common, url: row.url_key, ...row })))],
  );
}

/** Stores pull requests that runs have named. */
export async function storeProduced(sql: Sql, rows: readonly ProducedRow[]): Promise<void> {
  const common = { pr_number: 1, title: "Fix" };
  await sql.query(
    `INSERT INTO produced_pull_requests SELECT * FROM json_populate_recordset(NULL::produced_pull_requests, $1) ON CONFLICT DO NOTHING`,
    [JSON.stringify(rows.map((row) => ({ ...common, url: row.url_key, ...row })))],
  );
}

/** Stores what persons and programs did. */
export async function storeActivities(sql: Sql, rows: readonly ActivityRow[]): Promise<void> {
  await sql.query(
    `INSERT INTO pull_request_activities SELECT * FROM json_populate_recordset(NULL::pull_request_activities, $1) ON CONFLICT DO NOTHING`,
    [JSON.stringify(rows.map((row) => ({ actor_login: "someone", is_approximate: false, ...row })))],
  );
}

/** Stores records of a factory's pull requests. A later record replaces an earlier one. */
export async function storeRecords(sql: Sql, rows: readonly RecordRow[]): Promise<void> {
  const common = {
    provider: "GITHUB",
    pr_number: 1,
    updated_at: new Date(0),
    runs: [],
    kickoff_run_uid: newUid(),
    inference_micros: 0,
    compute_micros: 0,
    platform_micros: 0,
  };
  await sql.query(
    "DELETE FROM factory_pull_requests WHERE (factory_uid, url_key) IN (SELECT * FROM unnest($1::uuid[], $2::text[]))",
    [rows.map(({ factory_uid }) => factory_uid), rows.map(({ url_key }) => url_key)],
  );
  await sql.query(
    "INSERT INTO factory_pull_requests SELECT * FROM json_populate_recordset(NULL::factory_pull_requests, $1)",
    [JSON.stringify(rows.map((row) => ({ ...common, url: row.url_key, ...row })))],
  );
}
