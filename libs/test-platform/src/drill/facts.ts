import type { Sql } from "@millwright/database";

export type EventFact = {
  readonly seq: number;
  readonly uid: string;
  readonly kind: string;
  readonly executionId: number | null;
  readonly attempt: number | null;
  readonly isSuperseded: boolean;
  readonly payload: Readonly<Record<string, any>>;
};
export type MessageFact = {
  readonly uid: string;
  readonly kind: string;
  readonly text: string;
  readonly isDelivered: boolean;
  readonly isUndeliverable: boolean;
  readonly reason: string | null;
};

/** A run as stored in the orchestrator's database, read in one statement. */
export type RunFacts = {
  readonly uid: string;
  readonly parentUid: string | null;
  readonly prompt: string;
  readonly state: string;
  readonly errorCode: string | null;
  readonly message: string | null;
  readonly isFinished: boolean;
  readonly lastSeq: number;
  readonly lastClientSeq: number;
  readonly events: readonly EventFact[];
  readonly messages: readonly MessageFact[];
  /** Oldest first. `accepted` is the newest attempt that a worker accepted. */
  readonly executions: readonly { readonly id: number; readonly state: string; readonly accepted: number }[];
  readonly artifacts: readonly { readonly type: string; readonly name: string }[];
  readonly pullRequests: number;
};

const FACTS = `
  SELECT r.uid, r.parent_run_uid AS "parentUid", r.prompt, r.state, r.error_code AS "errorCode", r.status_message AS message,
         r.finished_at IS NOT NULL AS "isFinished", s.last_seq AS "lastSeq", s.last_client_seq AS "lastClientSeq",
         (SELECT coalesce(jsonb_agg(jsonb_build_object('seq', e.seq, 'uid', e.uid, 'kind', e.kind, 'executionId', e.execution_id, 'attempt', e.attempt, 'payload', e.payload,
                   'isSuperseded', coalesce(e.attempt < x.accepted_attempt AND e.attempt <> ALL(x.retained_attempts), false)) ORDER BY e.seq), '[]')
            FROM stream.run_events e LEFT JOIN executions x ON x.id = e.execution_id WHERE e.run_uid = r.uid) AS events,
         (SELECT coalesce(jsonb_agg(jsonb_build_object('uid', m.uid, 'kind', m.kind, 'text', m.text, 'isDelivered', m.delivered_at IS NOT NULL,
                   'isUndeliverable', m.undeliverable, 'reason', m.undeliverable_reason) ORDER BY m.seq), '[]') FROM messages m WHERE m.run_uid = r.uid) AS messages,
         (SELECT jsonb_agg(jsonb_build_object('id', x.id, 'state', x.state, 'accepted', x.accepted_attempt) ORDER BY x.seq) FROM executions x WHERE x.run_uid = r.uid) AS executions,
         (SELECT coalesce(jsonb_agg(jsonb_build_object('type', a.artifact_type, 'name', coalesce(a.data->>'filename', ''))), '[]')
            FROM artifacts a WHERE a.run_uid = r.uid AND a.committed_at IS NOT NULL) AS artifacts,
         (SELECT count(*)::int FROM pull_requests p WHERE p.run_uid = r.uid) AS "pullRequests"
    FROM runs r JOIN run_streams s ON s.run_uid = r.uid
   WHERE r.root_run_uid = ANY($1::uuid[]) ORDER BY r.created_at, r.uid`;

/** Returns the facts of all runs of these trees. */
export const factsOf = async (sql: Sql, roots: readonly string[]): Promise<RunFacts[]> =>
  (await sql.query<RunFacts>(FACTS, [roots])).rows;

const LIVE = "('QUEUED', 'PENDING', 'CLAIMED', 'INPROGRESS')";

export type TreeProgress = {
  /** Active runs with their states. */
  readonly active: readonly { readonly uid: string; readonly state: string }[];
  /** Number of leases that are left. */
  readonly leases: number;
  /** Increases with every change of these runs. */
  readonly progress: number;
};

/** Returns the progress of these trees. */
export async function progressOf(sql: Sql, roots: readonly string[]): Promise<TreeProgress> {
  const { rows } = await sql.query<TreeProgress>(
    `WITH ours AS (SELECT uid, state, version FROM runs WHERE root_run_uid = ANY($1::uuid[]))
     SELECT coalesce(jsonb_agg(jsonb_build_object('uid', uid, 'state', state)) FILTER (WHERE state IN ${LIVE}), '[]') AS active,
            (SELECT count(*)::int FROM leases WHERE run_uid IN (SELECT uid FROM ours)) AS leases,
            coalesce(sum(version), 0)::int + (SELECT coalesce(sum(last_seq), 0)::int FROM run_streams WHERE run_uid IN (SELECT uid FROM ours)) AS progress
       FROM ours`,
    [roots],
  );
  return rows[0]!;
}

/** Finds rows that contradict each other. These invariants hold in every snapshot of the database. */
const CONTRADICTIONS = `
  SELECT 'capacity of ' || c.scope || ' counts ' || c.in_use || ', but leases are ' || n.leases AS violation
    FROM capacity c CROSS JOIN LATERAL (
      SELECT count(*) AS leases FROM leases l JOIN runs r ON r.uid = l.run_uid
       WHERE CASE c.scope WHEN 'agent' THEN r.agent_uid = c.uid WHEN 'factory' THEN r.factory_uid = c.uid ELSE r.owner_uid = c.uid END) n
   WHERE c.in_use <> n.leases OR c.in_use > c.in_use_max
  UNION ALL
  SELECT 'run ' || r.uid || ' is ' || r.state || ' with an execution that is ' || x.state || CASE WHEN l.execution_id IS NULL THEN ' without a lease' ELSE ' with a lease' END
         || CASE WHEN w.run_uid IS NULL THEN '' ELSE ' and a wait' END
    FROM runs r
    JOIN LATERAL (SELECT * FROM executions e WHERE e.run_uid = r.uid ORDER BY e.seq DESC LIMIT 1) x ON true
    LEFT JOIN leases l ON l.execution_id = x.id AND l.attempt = x.attempt
    LEFT JOIN waits w ON w.run_uid = r.uid
   WHERE NOT CASE r.state
     WHEN 'QUEUED' THEN x.state = 'QUEUED' AND l.execution_id IS NULL AND w.run_uid IS NULL
     WHEN 'PENDING' THEN x.state = 'OFFERED' AND NOT l.accepted AND w.run_uid IS NULL
     WHEN 'CLAIMED' THEN x.state = 'CLAIMED' AND l.accepted AND w.run_uid IS NULL
     WHEN 'INPROGRESS' THEN (x.state = 'RUNNING' AND l.accepted AND w.run_uid IS NULL) OR (x.state = 'ENDED' AND l.execution_id IS NULL AND w.run_uid IS NOT NULL)
     ELSE (x.state = 'ENDED') = (l.execution_id IS NULL) AND (x.state IN ('STOPPING', 'ENDED') OR (x.state = 'DEBUG' AND r.state = 'FAILED')) AND w.run_uid IS NULL END
  UNION ALL
  SELECT 'run ' || w.run_uid || ' waits for ' || w.policy || ', though there is nothing to wait for' FROM waits w
   WHERE w.policy = 'all' AND NOT EXISTS (SELECT 1 FROM runs c WHERE c.uid = ANY(w.run_uids) AND c.state IN ${LIVE})
      OR w.policy = 'any' AND EXISTS (
        SELECT 1 FROM runs c LEFT JOIN reported_children t ON t.parent_run_uid = w.run_uid AND t.child_run_uid = c.uid
         WHERE c.uid = ANY(w.run_uids) AND c.state NOT IN ${LIVE} AND coalesce(t.execution_count < c.execution_count, true))`;

export const contradictions = async (sql: Sql): Promise<string[]> =>
  (await sql.query<{ violation: string }>(CONTRADICTIONS)).rows.map(({ violation }) => violation);
