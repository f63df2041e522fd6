import type { Sql } from "@millwright/database";
import { NIL_UUID } from "@millwright/ids";

/** A claimed item. */
export type WorkItem = {
  id: number;
  kind: string;
  key: string;
  teamUid: string | null;
  payload: unknown;
  /** 1 at the first attempt. */
  attempts: number;
  /** W3C trace context of the enqueuing request. */
  traceparent: string | null;
  /** Identifies this claim: after another claim, the item can no longer be completed with it. */
  lease: string;
};

/** The fair-share group of items without a team. */
export const NO_TEAM = NIL_UUID;

/** The fair-share group of an item; items without a team have a common one. */
const teamOf = (item: string): string => `coalesce(${item}.team_uid, '${NO_TEAM}'::uuid)`;
const OPEN = "state IN ('waiting', 'running')";

/**
 * Claims due items, fairly between teams: an item's turn is its position among the due items of its team, after those
 * that are running; among equals, the team that this process served least recently comes first. So a flood of one team
 * delays another team by one item at most; within a team, the item that was due first comes first. Teams are found by a
 * loose index scan, so that a long queue of one team costs nothing. More items are read than claimed, because other
 * replicas may claim them concurrently.
 *
 * A queue grows faster than PostgreSQL's statistics, so the query does not depend on estimates: candidates are read
 * once, and their rows are found by their ids.
 */
const CLAIM = `
  WITH RECURSIVE team (uid) AS (
    (SELECT ${teamOf("w")} FROM stream.work_items w WHERE w.${OPEN} ORDER BY 1 LIMIT 1)
    UNION ALL
    SELECT (SELECT ${teamOf("w")} FROM stream.work_items w WHERE w.${OPEN} AND ${teamOf("w")} > t.uid ORDER BY 1 LIMIT 1) FROM team t WHERE t.uid IS NOT NULL),
  busy AS (SELECT ${teamOf("w")} AS uid, count(*) FILTER (WHERE w.due_at > now()) AS items FROM stream.work_items w WHERE w.state = 'running' GROUP BY 1),
  candidates AS MATERIALIZED (
    SELECT due.id, due.state, due.due_at, array_position($5::uuid[], t.uid) AS served, coalesce(b.items, 0) + row_number() OVER (PARTITION BY t.uid ORDER BY due.due_at, due.id) AS turn
      FROM team t LEFT JOIN busy b ON b.uid = t.uid
     CROSS JOIN LATERAL (
       SELECT w.id, w.state, w.due_at FROM stream.work_items w
        WHERE ${teamOf("w")} = t.uid AND w.${OPEN} AND w.due_at <= now() AND w.kind = ANY ($1::text[]) ORDER BY w.due_at, w.id LIMIT $4) due)
  UPDATE stream.work_items SET state = 'running', lease = gen_random_uuid(), attempts = attempts + 1, due_at = now() + make_interval(secs => $3)
   WHERE id = ANY (ARRAY(SELECT w.id FROM candidates l JOIN stream.work_items w ON w.id = l.id AND w.state = l.state AND w.due_at = l.due_at
                          WHERE w.id = ANY (ARRAY(SELECT id FROM candidates))
                          ORDER BY l.turn, l.served NULLS FIRST, l.due_at, l.id LIMIT $2 FOR UPDATE OF w SKIP LOCKED))
   RETURNING id, kind, key, team_uid AS "teamUid", payload, attempts, traceparent, lease`;

/**
 * `served`: teams in the order in which they were served last. All times are the database's, so that the clocks of
 * replicas do not matter.
 */
export async function claim(
  sql: Sql,
  kinds: readonly string[],
  limit: number,
  leaseSeconds: number,
  served: readonly string[] = [],
): Promise<WorkItem[]> {
  const { rows } = await sql.query<WorkItem>(CLAIM, [kinds, limit, leaseSeconds, 4 * limit + 16, served]);
  return rows;
}

/** SQL: the claimed items whose ids are $1 and whose leases are $2, row by row. */
const CLAIMED =
  "FROM unnest($1::bigint[], $2::uuid[]) AS claimed (id, lease) WHERE w.id = claimed.id AND w.lease = claimed.lease";
const claimsOf = (items: readonly WorkItem[]): unknown[] => [
  items.map(({ id }) => id),
  items.map(({ lease }) => lease),
];

/** Renews the claims. Returns how many were not lost. */
export async function renew(sql: Sql, items: readonly WorkItem[], leaseSeconds: number): Promise<number> {
  const { rowCount } = await sql.query(
    `UPDATE stream.work_items w SET due_at = now() + make_interval(secs => $3) ${CLAIMED}`,
    [...claimsOf(items), leaseSeconds],
  );
  return rowCount;
}

/** Marks the items done. Returns how many were: a lost claim changes nothing. */
export async function finish(sql: Sql, items: readonly WorkItem[]): Promise<number> {
  const { rowCount } = await sql.query(
    `UPDATE stream.work_items w SET state = 'done', lease = NULL, ended_at = now(), last_error = NULL ${CLAIMED}`,
    claimsOf(items),
  );
  return rowCount;
}

/** Returns the item to the queue for a later attempt. */
export async function postpone(sql: Sql, { id, lease }: WorkItem, seconds: number, error: string): Promise<void> {
  await sql.query(
    `UPDATE stream.work_items SET state = 'waiting', lease = NULL, last_error = $4, due_at = now() + make_interval(secs => $3)
      WHERE id = $1 AND lease = $2`,
    [id, lease, seconds, error],
  );
}

/** Returns the item to the queue without counting an attempt: its process is stopping. */
export async function release(sql: Sql, { id, lease }: WorkItem): Promise<void> {
  await sql.query(
    "UPDATE stream.work_items SET state = 'waiting', lease = NULL, attempts = attempts - 1, due_at = date_trunc('milliseconds', now()) WHERE id = $1 AND lease = $2",
    [id, lease],
  );
}

export async function deadLetter(sql: Sql, { id, lease }: WorkItem, error: string): Promise<void> {
  await sql.query(
    "UPDATE stream.work_items SET state = 'dead_lettered', lease = NULL, last_error = $3 WHERE id = $1 AND lease = $2",
    [id, lease, error],
  );
}

/** Restarts dead-lettered items (of one kind, or all). Returns how many. */
export async function restartDeadLettered(sql: Sql, kind?: string): Promise<number> {
  const { rowCount } = await sql.query(
    `UPDATE stream.work_items SET state = 'waiting', attempts = 0, due_at = date_trunc('milliseconds', now()) WHERE state = 'dead_lettered' AND ($1::text IS NULL OR kind = $1)`,
    [kind ?? null],
  );
  return rowCount;
}

/** Deletes items completed more than `days` ago; their keys become free. */
export async function forget(sql: Sql, days: number): Promise<void> {
  await sql.query(
    "DELETE FROM stream.work_items WHERE state = 'done' AND ended_at < now() - make_interval(days => $1)",
    [days],
  );
}

export type WorkCount = {
  kind: string;
  state: "waiting" | "running" | "dead_lettered";
  count: number;
  /** Returns how overdue the oldest due item is; 0 if none is due. */
  overdueSeconds: number;
};

/** Counts unfinished items. */
export async function count(sql: Sql): Promise<WorkCount[]> {
  const { rows } = await sql.query<WorkCount>(
    `SELECT kind, state, count(*) AS count, greatest(0, extract(epoch FROM now() - min(due_at) FILTER (WHERE state = 'waiting')))::float8 AS "overdueSeconds"
       FROM stream.work_items WHERE state <> 'done' GROUP BY kind, state ORDER BY kind, state`,
  );
  return rows;
}
