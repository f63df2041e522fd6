import type { Sql } from "@millwright/database";
import { isUuid, type AgentUid } from "@millwright/ids";
import type { ScoredRun } from "../domain/scored-run.ts";
import { LISTED_RUN_COLUMNS, RUN_COLUMNS, toRun, type RunRow } from "../../runs/store/run-fields.ts";
import { LEFT_WORKSPACE } from "../../runs/store/workspace-store.ts";

type Stored = Omit<ScoredRun, "usage" | "ancestorAgentUids">;
type Row = RunRow & { has_conversation: boolean; has_workspace: boolean };

/** Uses subqueries with LIMIT instead of EXISTS, for the reason stated at RUN_COLUMNS. */
const SCORED = `
  coalesce((SELECT true FROM stream.run_events e
    WHERE e.run_uid = r.uid AND (e.kind IN ('model_step', 'tool_start') OR (e.kind = 'message' AND e.payload ->> 'role' = 'assistant')) LIMIT 1), false) AS has_conversation,
  coalesce((SELECT true FROM (${LEFT_WORKSPACE}) w), false) AS has_workspace`;

/** Reads runs for scoring, without an access check. */
export const scoredRunStore = {
  /** Returns runs in no particular order; unknown and malformed uids are left out. Prompts are truncated. */
  list: (sql: Sql, uids: readonly string[]): Promise<Stored[]> => read(sql, LISTED_RUN_COLUMNS, uids),

  /** Returns a run with its whole prompt. */
  find: async (sql: Sql, uid: string): Promise<Stored | undefined> => (await read(sql, RUN_COLUMNS, [uid]))[0],

  /** Returns the agents of the runs above each of these, nearest first; runs without any are left out. */
  async ancestorAgents(sql: Sql, uids: readonly string[]): Promise<ReadonlyMap<string, readonly AgentUid[]>> {
    const { rows } = await sql.query<{ uid: string; agent_uids: AgentUid[] }>(
      `WITH RECURSIVE above (uid, distance, parent_run_uid, agent_uid) AS (
         SELECT r.uid, 0, r.parent_run_uid, NULL::uuid FROM runs r WHERE r.uid = ANY($1::uuid[]) AND r.parent_run_uid IS NOT NULL
         UNION ALL
         SELECT a.uid, a.distance + 1, p.parent_run_uid, p.agent_uid FROM above a JOIN runs p ON p.uid = a.parent_run_uid)
       SELECT uid, array_agg(agent_uid ORDER BY distance) AS agent_uids FROM above WHERE agent_uid IS NOT NULL GROUP BY uid`,
      [uids.filter(isUuid)],
    );
    return new Map(rows.map(({ uid, agent_uids }) => [uid, [...new Set(agent_uids)]]));
  },
};

async function read(sql: Sql, columns: string, uids: readonly string[]): Promise<Stored[]> {
  const { rows } = await sql.query<Row>(`SELECT ${columns}, ${SCORED} FROM runs r WHERE r.uid = ANY($1::uuid[])`, [
    uids.filter(isUuid),
  ]);
  return rows.map((row) => ({
    run: toRun(row),
    hasConversation: row.has_conversation,
    hasWorkspace: row.has_workspace,
  }));
}
