import type { Sql } from "@millwright/database";

/** The state of a service's event tables. */
export type FeedState = {
  readonly head: number;
  /** Events that the sequencer has not moved yet, counted up to COUNT_MAX, and the age of the oldest. */
  readonly pending: number;
  readonly oldestPendingSeconds: number;
  /** Events that the relay has not published; undefined without a relay. */
  readonly relayLag: number | undefined;
  readonly consumers: readonly {
    readonly reader: string;
    readonly source: string;
    readonly events: number;
    readonly isStopped: boolean;
  }[];
};

const COUNT_MAX = 10_000;

/** Reads the state; cheap enough to be called every few seconds. */
export async function readFeedState(sql: Sql): Promise<FeedState> {
  const { rows } = await sql.query<{ head: number; pending: number; age: number | null; relayed: number | null }>(
    `SELECT m.head, (SELECT count(*) FROM (SELECT 1 FROM stream.event_pending LIMIT ${COUNT_MAX}) AS p) AS pending,
            (SELECT extract(epoch FROM clock_timestamp() - occurred_at)::float8 FROM stream.event_pending ORDER BY seq LIMIT 1) AS age,
            (SELECT position FROM stream.feed_cursors WHERE reader = 'nats-relay') AS relayed
       FROM stream.event_meta m`,
  );
  const { rows: consumers } = await sql.query<FeedState["consumers"][number]>(
    `SELECT c.reader, c.source, c.stopped_reason IS NOT NULL AS "isStopped",
            (SELECT count(*) FROM stream.dead_lettered_events e WHERE e.reader = c.reader AND e.source = c.source) AS events
       FROM stream.feed_cursors c WHERE c.reader <> 'nats-relay'`,
  );
  const { head = 0, pending = 0, age = null, relayed = null } = rows[0] ?? {};
  return {
    head,
    pending,
    oldestPendingSeconds: Math.max(0, age ?? 0),
    relayLag: relayed === null ? undefined : Math.max(0, head - relayed),
    consumers,
  };
}
