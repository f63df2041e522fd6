import { Batcher, type Sql } from "@millwright/database";
import { isUuid } from "@millwright/ids";
import { teamEventType, type TeamEvent, type TeamEventQuery } from "../domain/team-event.ts";
import type { RunState } from "../domain/run.ts";

type PageRequest = TeamEventQuery & { readonly after: number; readonly limit: number };
type Row = {
  position: number;
  uid: string;
  team_uid: string;
  entity_uid: string;
  occurred_at: Date;
  state: RunState | null;
};

/** Reads each team's events in the order of an index, so that only events of the page are read. */
const PAGE = `
  SELECT e.* FROM unnest($1::uuid[]) AS t (uid)
   CROSS JOIN LATERAL (
     SELECT position, uid, team_uid, entity_uid, occurred_at, payload->>'to' AS state FROM stream.event_log
      WHERE team_uid = t.uid AND entity = 'run' AND position > $2 AND type IN ('millwright.run.created.v1', 'millwright.run.state_changed.v1')
        AND (cardinality($3::text[]) = 0 OR entity_uid = ANY($3::text[]))
        AND ($5::uuid IS NULL OR EXISTS (
          SELECT 1 FROM runs r WHERE r.uid = entity_uid::uuid AND (r.root_run_uid = $5 OR r.factory_uid = $6::uuid)))
      ORDER BY position LIMIT $4) AS e
   ORDER BY e.position LIMIT $4`;

/**
 * Returns a function that reads events of teams after a sequence, oldest first. Identical concurrent requests share one
 * read.
 */
export function teamEventReader(sql: Sql) {
  const read = async ({ teamUids, runUids, within, after, limit }: PageRequest): Promise<TeamEvent[]> => {
    const wanted = runUids.map((uid) => uid.toLowerCase()).filter(isUuid);
    if (runUids.length > 0 && wanted.length === 0) return [];
    const { rows } = await sql.query<Row>(PAGE, [
      teamUids,
      after,
      wanted,
      limit,
      within?.rootRunUid ?? null,
      within?.factoryUid ?? null,
    ]);
    return rows.map((row) => ({
      sequence: row.position,
      uid: row.uid,
      teamUid: row.team_uid,
      runUid: row.entity_uid,
      eventType: teamEventType(row.state),
      occurredAt: row.occurred_at,
    }));
  };
  const pages = new Batcher(async (requests: readonly string[]) => {
    const found = new Map([...new Set(requests)].map((request) => [request, read(JSON.parse(request) as PageRequest)]));
    return Promise.all(requests.map((request) => found.get(request)!));
  });
  return (request: PageRequest): Promise<readonly TeamEvent[]> => pages.add(JSON.stringify(request));
}
