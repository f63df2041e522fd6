import { randomUUID } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import type { PoolClient, Pool } from "pg";

/** The owner of all runs that the reference implementation creates. */
export const OWNER = randomUUID();
const [OWNER_TEXT, HARNESS] = ["the-owner", "oz"] as const;

/** Inserts the lane and capacity rows, which exist on the platform, too, before the first request. */
export async function prepareRows(pool: Pool): Promise<void> {
  await pool.query("INSERT INTO lanes (owner_type, owner_uid, harness) VALUES ('team', $1, $2)", [OWNER, HARNESS]);
  await pool.query("INSERT INTO capacity (scope, uid, in_use_max) VALUES ('team', $1, 100)", [OWNER]);
}

/** Runs `f` in a transaction on one connection, without retries. */
export async function transaction<T>(pool: Pool, f: (tx: PoolClient) => Promise<T>): Promise<T> {
  const client = await pool.connect();
  try {
    await client.query("BEGIN");
    const result = await f(client);
    await client.query("COMMIT");
    return result;
  } catch (error) {
    await client.query("ROLLBACK");
    throw error;
  } finally {
    client.release();
  }
}

export type NewRow = { readonly prompt: string; readonly title: string };

/** The columns of a run that a response contains. */
export type RunRow = {
  readonly uid: string;
  readonly root_run_uid: string;
  readonly title: string;
  readonly state: string;
  readonly submitted_prompt: string;
  readonly created_at: Date;
  readonly updated_at: Date;
  readonly source: string;
  readonly execution_location: string;
  readonly creator_uid: string;
  readonly executor_uid: string;
  readonly owner_type: string;
  readonly owner_uid: string;
  readonly agent_config: JsonObject;
  readonly metadata: Record<string, string>;
  readonly conversation_uid: string;
  readonly mode: string;
};

/** Reads a run by one prepared statement. */
export async function readRow(pool: Pool, uid: string): Promise<RunRow | undefined> {
  const { rows } = await pool.query<RunRow>({
    name: "read",
    text: "SELECT * FROM runs WHERE uid = $1",
    values: [uid],
  });
  return rows[0];
}

/**
 * Writes the rows that the creation of a run writes in the platform's database (the same tables, indexes and
 * constraints), by one prepared statement per row, without authentication, validation, configuration and notifications.
 * Returns the run as it was inserted.
 */
export async function insertRows(tx: PoolClient, { prompt, title }: NewRow): Promise<RunRow> {
  const uid = randomUUID();
  const conversationUid = randomUUID();
  const query = (name: string, text: string, values: unknown[]) => tx.query({ name, text, values });
  await query(
    "run",
    `INSERT INTO runs (uid, root_run_uid, depth, owner_type, owner_uid, creator_type, creator_uid, executor_uid, title, state, prompt, submitted_prompt, mode,
                       interactive, source, conversation_uid, model_id, agent_config, frozen, metadata)
     VALUES ($1, $1, 0, 'team', $2, 'user', $3, $3, $4, 'QUEUED', $5, $5, 'normal', false, 'API', $6, 'scripted', $7, $8, '{}')`,
    [uid, OWNER, OWNER_TEXT, title, prompt, conversationUid, AGENT_CONFIG, FROZEN],
  );
  await query(
    "execution",
    "INSERT INTO executions (run_uid, seq, state, lane_id, depth) SELECT $1, 1, 'QUEUED', id, 0 FROM lanes WHERE owner_uid = $2",
    [uid, OWNER],
  );
  await query("stream", "INSERT INTO run_streams (run_uid, last_seq) VALUES ($1, 1)", [uid]);
  await query(
    "message",
    "INSERT INTO messages (uid, run_uid, seq, kind, text, mode, author_type, author_uid) VALUES ($1, $2, 1, 'prompt', $3, 'normal', 'user', $4)",
    [randomUUID(), uid, prompt, OWNER_TEXT],
  );
  await query(
    "event",
    "INSERT INTO stream.run_events (run_uid, seq, uid, kind, occurred_at, payload) VALUES ($1, 1, $2, 'run_created', clock_timestamp(), '{}')",
    [uid, randomUUID()],
  );
  await query(
    "fact",
    `INSERT INTO stream.event_pending (uid, type, entity, entity_uid, entity_version, team_uid, actor_type, actor_uid, request_id, occurred_at, payload)
     VALUES ($1, 'millwright.run.created.v1', 'run', $2::uuid::text, 1, $3, 'user', $4, $5, now(), $6)`,
    [
      randomUUID(),
      uid,
      OWNER,
      OWNER_TEXT,
      randomUUID(),
      JSON.stringify({ run_uid: uid, root_run_uid: uid, title, source: "API" }),
    ],
  );
  const now = new Date();
  return {
    uid,
    root_run_uid: uid,
    title,
    state: "QUEUED",
    submitted_prompt: prompt,
    created_at: now,
    updated_at: now,
    source: "API",
    execution_location: "REMOTE",
    creator_uid: OWNER_TEXT,
    executor_uid: OWNER_TEXT,
    owner_type: "team",
    owner_uid: OWNER,
    agent_config: CONFIG,
    metadata: {},
    conversation_uid: conversationUid,
    mode: "normal",
  };
}

const CONFIG = { model_id: "scripted", idle_timeout_minutes: 10, harness: { type: HARNESS } };
const AGENT_CONFIG = JSON.stringify(CONFIG);
const FROZEN = JSON.stringify({
  agent_prompt: "",
  base_prompt: "",
  model_id: "scripted",
  provider: "scripted",
  harness: "oz",
  skills: [],
  repositories: [],
  setup_commands: [],
  docker_image: "",
  env: {},
  secret_names: [],
  requirements: { harness: "oz" },
  idle_timeout_minutes: 10,
  spawnable_agents: [],
  provenance: {},
});
