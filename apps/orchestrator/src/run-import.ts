import { Database } from "@millwright/database";

/** An ended run that no worker of this platform has executed. */
export type ImportedRun = {
  readonly uid: string;
  readonly rootUid: string;
  readonly parentUid: string | undefined;
  readonly conversationUid: string;
  readonly teamUid: string;
  readonly factoryUid: string;
  /** The person who caused the run. */
  readonly userUid: string;
  readonly agentUid: string;
  readonly agentName: string;
  readonly modelId: string;
  readonly source: string;
  readonly title: string;
  readonly prompt: string;
  readonly state: "SUCCEEDED" | "FAILED";
  readonly createdAt: Date;
  readonly finishedAt: Date;
};

/** Ended runs for the database of the orchestrator. No events are announced. */
export type RunImport = {
  storeRuns(runs: readonly ImportedRun[]): Promise<void>;
  close(): Promise<void>;
};

/** Opens the database of the orchestrator, which the service has migrated. */
export function openRunImport(databaseUrl: string): RunImport {
  const database = Database.open(databaseUrl, { max: 1, applicationName: "run import" });
  return {
    storeRuns: async (runs) => void (await database.sql.query(INSERT, [JSON.stringify(runs)])),
    close: () => database.close(),
  };
}

/** One statement: parents and children refer to each other. */
const INSERT = `
WITH run AS (
  INSERT INTO runs (uid, root_run_uid, parent_run_uid, depth, owner_type, owner_uid, creator_type, creator_uid,
                    executor_uid, agent_uid, agent_name, factory_uid, conversation_uid, title, state, prompt, mode, interactive,
                    source, execution_location, config_name, model_id, agent_config, frozen, execution_count, run_time_ms,
                    created_at, updated_at, started_at, finished_at)
  SELECT uid, "rootUid", "parentUid", CASE WHEN "parentUid" IS NULL THEN 0 ELSE 1 END, 'team', "teamUid", 'user', "userUid",
         "agentUid", "agentUid", "agentName", "factoryUid", "conversationUid", title, state, prompt, 'normal', false,
         source, 'LOCAL', "agentName", "modelId", jsonb_build_object('name', "agentName", 'model_id', "modelId"), '{}', 1,
         1000 * extract(epoch FROM "finishedAt" - "createdAt"),
         "createdAt", "finishedAt", "createdAt", "finishedAt"
    FROM json_to_recordset($1) AS given (
           uid uuid, "rootUid" uuid, "parentUid" uuid, "conversationUid" uuid, "teamUid" uuid, "factoryUid" uuid, "userUid" text,
           "agentUid" uuid, "agentName" text, "modelId" text, source text, title text, prompt text, state text,
           "createdAt" timestamptz, "finishedAt" timestamptz)
  RETURNING uid, owner_uid, depth, state, created_at, finished_at),
lane AS (
  INSERT INTO lanes (owner_type, owner_uid, harness)
  SELECT DISTINCT 'team', owner_uid, 'oz' FROM run
  ON CONFLICT ON CONSTRAINT lanes_key DO UPDATE SET harness = excluded.harness -- so that an existing lane is returned
  RETURNING id, owner_uid),
execution AS (
  INSERT INTO executions (run_uid, seq, state, lane_id, depth, is_local, outcome, queued_at, claimed_at, started_at, ended_at)
  SELECT run.uid, 1, 'ENDED', lane.id, run.depth, true, CASE run.state WHEN 'SUCCEEDED' THEN 'DONE' ELSE run.state END,
         run.created_at, run.created_at, run.created_at, run.finished_at
    FROM run JOIN lane USING (owner_uid))
INSERT INTO run_streams (run_uid, last_seq) SELECT uid, 0 FROM run`;
