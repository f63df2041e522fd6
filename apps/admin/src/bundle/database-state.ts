import { Client } from "pg";

/** Error messages may contain user data, so only the error class is exported: the text before a colon. */
const KIND_OF_ERROR = (column: string): string => `substring(${column} FROM '^[A-Za-z]+(?=:|$)')`;

/** The facts about a service's database, each with its query. None of them selects a name, a text or a payload. */
const FACTS: Readonly<Record<string, string>> = {
  server: `SELECT current_setting('server_version') AS version,
                  pg_size_pretty(pg_database_size(current_database())) AS size,
                  pg_postmaster_start_time() AS started_at`,
  migrations: `SELECT migration_name AS name, finished_at, rolled_back_at, applied_steps_count AS steps
                 FROM _prisma_migrations
                ORDER BY started_at`,
  events: `SELECT log_uid, head, partitioned_to,
                  (SELECT count(*) FROM stream.event_pending) AS pending,
                  (SELECT min(occurred_at) FROM stream.event_pending) AS oldest_pending
             FROM stream.event_meta`,
  consumers: `SELECT reader, source, log_uid, position, stopped_reason, updated_at
                FROM stream.feed_cursors
               ORDER BY reader, source`,
  dead_lettered_events: `SELECT reader, source, entity, event ->> 'type' AS type, ${KIND_OF_ERROR("reason")} AS error,
                                count(*) AS events, min(dead_lettered_at) AS oldest
                           FROM stream.dead_lettered_events
                          GROUP BY 1, 2, 3, 4, 5
                          ORDER BY 1, 2, 3, 4, 5`,
  work: `SELECT kind, state, ${KIND_OF_ERROR("last_error")} AS error, count(*) AS items,
                min(due_at) AS oldest_due, max(attempts) AS most_attempts
           FROM stream.work_items
          WHERE state <> 'done'
          GROUP BY 1, 2, 3
          ORDER BY 1, 2, 3`,
  connections: `SELECT application_name IN ('doctor', 'support-bundle') AS is_admin, state, wait_event_type,
                       count(*) AS connections, max(now() - xact_start)::text AS longest_transaction
                  FROM pg_stat_activity
                 WHERE datname = current_database()
                 GROUP BY 1, 2, 3`,
  tables: `SELECT relname AS name, n_live_tup AS rows, n_dead_tup AS dead_rows, last_autovacuum,
                  pg_total_relation_size(relid) AS bytes
             FROM pg_stat_user_tables
            ORDER BY relname`,
};

/** The tables that not every service has. */
const OF_SOME_SERVICES: Readonly<Record<string, readonly [table: string, query: string]>> = {
  runs: [
    "run_streams",
    `SELECT state, count(*) AS runs FROM runs WHERE state NOT IN ('SUCCEEDED', 'FAILED', 'CANCELLED') GROUP BY 1 ORDER BY 1`,
  ],
  leases: ["leases", "SELECT count(*) AS leases, min(expires_at) AS next_expiry FROM leases"],
};

/** Returns the facts of a database, or for each fact that cannot be read the kind of its error. */
export async function databaseState(url: string): Promise<Readonly<Record<string, unknown>>> {
  const db = new Client({ connectionString: url, application_name: "support-bundle", query_timeout: 10_000 });
  db.on("error", () => {}); // the running statement reports it
  const state: Record<string, unknown> = {};
  try {
    await db.connect();
    for (const [fact, query] of Object.entries(FACTS)) state[fact] = await rowsOf(db, query);
    for (const [fact, [table, query]] of Object.entries(OF_SOME_SERVICES)) {
      const { rows } = await db.query<{ exists: boolean }>("SELECT to_regclass($1) IS NOT NULL AS exists", [table]);
      if (rows[0]?.exists) state[fact] = await rowsOf(db, query);
    }
  } catch (error) {
    state["error"] = codeOf(error);
  } finally {
    await db.end().catch(() => {});
  }
  return state;
}

const rowsOf = async (db: Client, query: string): Promise<unknown> => {
  try {
    return (await db.query<Record<string, unknown>>(query)).rows;
  } catch (error) {
    return { error: codeOf(error) };
  }
};

const codeOf = (error: unknown): string => {
  const { code, name } = error as { code?: string; name: string };
  return code ?? name;
};
