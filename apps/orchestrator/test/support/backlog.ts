import type { Database } from "@millwright/database";

export type Backlog = {
  readonly teamUid: string;
  readonly agentUid?: string;
  readonly factoryUid?: string;
  readonly count: number;
};

/** Queues many runs by direct inserts, because the API would take minutes. Inserts the same rows as `insertRuns`. */
export async function queueBacklog(
  { sql }: Database,
  { teamUid, agentUid, factoryUid, count }: Backlog,
): Promise<void> {
  const key = [teamUid, agentUid ?? null, factoryUid ?? null];
  await sql.query(
    "INSERT INTO lanes (owner_type, owner_uid, agent_uid, factory_uid, harness) VALUES ('team', $1, $2, $3, 'oz') ON CONFLICT DO NOTHING",
    key,
  );
  await sql.query(
    `WITH run AS (
       INSERT INTO runs (uid, root_run_uid, depth, owner_type, owner_uid, creator_type, creator_uid, executor_uid, agent_uid, factory_uid, title, state, prompt, mode, interactive,
                         source, conversation_uid, agent_config, frozen)
       SELECT u, u, 0, 'team', $1::uuid, 'user', 'u', 'u', $2::uuid, $3::uuid, 'One of many', 'QUEUED', 'p', 'normal', false, 'API', u, '{}', '{}'
         FROM (SELECT gen_random_uuid() AS u FROM generate_series(1, $4::integer)) g RETURNING uid),
     lane AS (
       SELECT id FROM lanes WHERE owner_uid = $1::uuid AND agent_uid IS NOT DISTINCT FROM $2::uuid AND factory_uid IS NOT DISTINCT FROM $3::uuid
                              AND worker_host IS NULL AND harness = 'oz' AND image IS NULL),
     stream AS (INSERT INTO run_streams (run_uid, last_seq) SELECT uid, 0 FROM run)
     INSERT INTO executions (run_uid, seq, state, lane_id, depth) SELECT uid, 1, 'QUEUED', lane.id, 0 FROM run, lane`,
    [...key, count],
  );
}

/** Sets how many executions may run concurrently. */
export async function setCaps(
  { sql }: Database,
  caps: readonly (readonly [scope: "team" | "agent" | "factory", uid: string, max: number])[],
): Promise<void> {
  for (const [scope, uid, max] of caps) {
    await sql.query(
      "INSERT INTO capacity (scope, uid, in_use_max) VALUES ($1, $2, $3) ON CONFLICT (scope, uid) DO UPDATE SET in_use_max = excluded.in_use_max",
      [scope, uid, max],
    );
  }
}

/**
 * Ends some of the offered executions, in one transaction with the locks of a completion: runs by uid, then capacity,
 * then leases. Returns their number.
 */
export const endSome = (database: Database, executionIds: readonly number[]): Promise<number> =>
  database.transaction(async (tx) => {
    await tx.query(
      "SELECT 1 FROM runs WHERE uid IN (SELECT run_uid FROM executions WHERE id = ANY($1::bigint[])) ORDER BY uid FOR NO KEY UPDATE",
      [executionIds],
    );
    const { rows } = await tx.query<{ run_uid: string }>(
      "UPDATE executions SET state = 'ENDED', outcome = 'DONE' WHERE id = ANY($1::bigint[]) AND state = 'OFFERED' RETURNING run_uid",
      [executionIds],
    );
    const runUids = rows.map(({ run_uid }) => run_uid);
    await tx.query("UPDATE runs SET state = 'SUCCEEDED' WHERE uid = ANY($1::uuid[])", [runUids]);
    const used = `SELECT k.scope, k.uid, count(*)::integer AS n FROM runs r CROSS JOIN LATERAL (VALUES ('agent', r.agent_uid), ('factory', r.factory_uid), ('team', r.owner_uid)) AS k (scope, uid)
                   WHERE r.uid = ANY($1::uuid[]) AND k.uid IS NOT NULL GROUP BY k.scope, k.uid`;
    await tx.query(
      `SELECT 1 FROM capacity c JOIN (${used}) u ON u.scope = c.scope AND u.uid = c.uid ORDER BY c.scope, c.uid FOR UPDATE OF c`,
      [runUids],
    );
    await tx.query(
      `UPDATE capacity c SET in_use = c.in_use - u.n FROM (${used}) u WHERE c.scope = u.scope AND c.uid = u.uid`,
      [runUids],
    );
    await tx.query("DELETE FROM leases WHERE execution_id = ANY($1::bigint[])", [executionIds]);
    return rows.length;
  });
