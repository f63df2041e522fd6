import type { Sql } from "@millwright/database";
import type { RunSnapshot } from "../domain/run-snapshot.ts";
import { jsonColumns } from "./json-columns.ts";

/** Returns the versions of the runs that are stored. */
export async function storedVersions(sql: Sql, runUids: readonly string[]): Promise<Map<string, bigint>> {
  const { rows } = await sql.query<{ run_uid: string; version: string }>(
    "SELECT run_uid, version::text FROM run_facts WHERE run_uid = ANY($1::uuid[])",
    [runUids],
  );
  return new Map(rows.map(({ run_uid, version }) => [run_uid, BigInt(version)]));
}

const COLUMNS = jsonColumns({
  team_uid: "uuid",
  factory_uid: "uuid",
  root_run_uid: "uuid",
  parent_run_uid: "uuid",
  conversation_uid: "uuid",
  created_at: "timestamptz",
  finished_at: "timestamptz",
  version: "bigint",
  state: "text",
  source: "text",
  agent_uid: "text",
  agent_name: "text",
  agent_type: "text",
  model_id: "text",
  harness: "text",
  root_source: "text",
  creator_type: "text",
  creator_uid: "text",
  person_follow_ups: "integer",
});

/** Stores what is counted of runs, in place of older versions. Unchanged runs are not written. */
export async function storeRunFacts(tx: Sql, runs: readonly RunSnapshot[]): Promise<void> {
  await tx.query(
    `INSERT INTO run_facts AS r (run_uid, ${COLUMNS.list()})
     SELECT run_uid, ${COLUMNS.list()}
       FROM json_to_recordset($1::json) AS run (run_uid uuid, ${COLUMNS.definitions})
     ON CONFLICT (run_uid) DO UPDATE
     SET ${COLUMNS.excluded}
     WHERE r.version <= excluded.version AND r.* IS DISTINCT FROM excluded.*`,
    [JSON.stringify(runs.map(toRow))],
  );
}

const toRow = ({ costOwner, ...run }: RunSnapshot) => ({
  run_uid: run.uid,
  team_uid: run.teamUid,
  factory_uid: costOwner.factoryUid,
  root_run_uid: costOwner.rootRunUid,
  parent_run_uid: run.parentRunUid,
  conversation_uid: run.conversationUid,
  created_at: run.createdAt,
  finished_at: run.finishedAt,
  version: String(run.version),
  state: run.state,
  source: run.source,
  agent_uid: costOwner.agentUid,
  agent_name: run.agentName,
  agent_type: run.agentType,
  model_id: costOwner.modelId,
  harness: run.harness,
  root_source: costOwner.source,
  creator_type: costOwner.creatorType,
  creator_uid: costOwner.creatorUid,
  person_follow_ups: run.personFollowUps,
});
