import type { Sql } from "@millwright/database";
import { isUuid } from "@millwright/ids";
import type { CostOwner, RunSnapshot } from "../domain/run-facts.ts";

/**
 * The model of a run. Third-party harnesses have their model in the harness configuration, or use the platform's
 * default.
 */
const modelOf = (run: string): string =>
  `coalesce(${run}.model_id, ${run}.agent_config #>> '{harness,model_id}', ${run}.frozen ->> 'model_id', '')`;

const costOwner = (run: string, root: string): string => `jsonb_build_object(
  'runUid', ${run}.uid,
  'rootRunUid', ${root}.uid,
  'factoryUid', coalesce(${root}.factory_uid::text, ''),
  'source', ${root}.source,
  'creatorType', ${root}.creator_type,
  'creatorUid', ${root}.creator_uid,
  'agentUid', coalesce(${run}.agent_uid::text, ''),
  'modelId', ${modelOf(run)})`;

const SNAPSHOTS = `
  SELECT r.uid,
         r.owner_type,
         r.owner_uid,
         r.root_run_uid,
         coalesce(r.parent_run_uid::text, '') AS parent_run_uid,
         r.conversation_uid,
         r.created_at,
         r.finished_at,
         r.source,
         r.state,
         r.version,
         coalesce(r.agent_uid::text, '') AS agent_uid,
         coalesce(r.agent_name, '') AS agent_name,
         CASE WHEN r.source = 'SELF_IMPROVEMENT' THEN r.source ELSE coalesce(r.frozen ->> 'agent_type', '') END AS agent_type,
         ${modelOf("r")} AS model_id,
         coalesce(r.agent_config #>> '{harness,type}', r.frozen ->> 'harness', '') AS harness,
         ${costOwner("r", "root")} AS cost_owner,
         CASE WHEN first_root.factory_uid IS NOT DISTINCT FROM root.factory_uid
              THEN ${costOwner("first", "first_root")}
              ELSE ${costOwner("r", "root")} END AS inference_owner
    FROM runs r
    JOIN runs root ON root.uid = r.root_run_uid
   CROSS JOIN LATERAL (
         SELECT c.uid, c.root_run_uid, c.agent_uid, c.model_id, c.agent_config, c.frozen
           FROM runs c
          WHERE c.conversation_uid = r.conversation_uid
          ORDER BY c.created_at, c.uid
          LIMIT 1) first
    JOIN runs first_root ON first_root.uid = first.root_run_uid
   WHERE r.uid = ANY($1::uuid[])`;

/** Run uids increase with creation time, and only the index on them covers the runs of all teams. */
const WALK = `
  SELECT uid
    FROM runs
   WHERE owner_type = 'team'
     AND uid > $1::uuid
   ORDER BY uid
   LIMIT $2`;

/** Reads runs for the metrics service, without an access check. */
export const runFactsStore = {
  /** Returns runs in no particular order; unknown and malformed uids are left out. */
  async snapshots(sql: Sql, runUids: readonly string[]): Promise<RunSnapshot[]> {
    const { rows } = await sql.query<Row>(SNAPSHOTS, [runUids.filter(isUuid)]);
    return rows.map(toSnapshot);
  },

  /** Returns uids of runs of teams after a uid, oldest first. */
  async walk(sql: Sql, afterUid: string, limit: number): Promise<string[]> {
    return (await sql.query<{ uid: string }>(WALK, [afterUid, limit])).rows.map(({ uid }) => uid);
  },
};

type Row = Pick<RunSnapshot, "uid" | "source" | "state" | "version" | "harness"> & {
  owner_type: string;
  owner_uid: string;
  root_run_uid: string;
  parent_run_uid: string;
  conversation_uid: string;
  created_at: Date;
  finished_at: Date | null;
  agent_uid: string;
  agent_name: string;
  agent_type: string;
  model_id: string;
  cost_owner: CostOwner;
  inference_owner: CostOwner;
};

const toSnapshot = ({ uid, source, state, version, harness, finished_at: finishedAt, ...row }: Row): RunSnapshot => ({
  ...{ uid, source, state, version, harness },
  ownerType: row.owner_type,
  ownerUid: row.owner_uid,
  rootRunUid: row.root_run_uid,
  parentRunUid: row.parent_run_uid,
  conversationUid: row.conversation_uid,
  createdAt: row.created_at,
  finishedAt: finishedAt ?? undefined,
  agentUid: row.agent_uid,
  agentName: row.agent_name,
  agentType: row.agent_type,
  modelId: row.model_id,
  costOwner: row.cost_owner,
  inferenceOwner: row.inference_owner,
});
