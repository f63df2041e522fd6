import type { Sql } from "@millwright/database";
import { invalidArgument, notFound } from "@millwright/errors";
import type { Agent } from "../domain/agent-identity.ts";
import { isUniqueViolation } from "@millwright/database";

const COLUMNS = `uid, team_uid AS "teamUid", factory_uid AS "factoryUid", name, agent_type AS "agentType", description, prompt, config, enabled,
  file_managed AS "fileManaged", concurrency_limit AS "concurrencyLimit",
  queue_priority AS "queuePriority", queue_paused AS "queuePaused", version, created_at AS "createdAt", updated_at AS "updatedAt"`;

/** Returns an agent that belongs to one of the teams. Errors: agent_not_found. */
export async function getAgent(
  sql: Sql,
  teams: readonly string[],
  uid: string,
  lock: "" | "FOR UPDATE" = "",
): Promise<Agent> {
  const { rows } = await sql.query<Agent>(
    `SELECT ${COLUMNS} FROM agents WHERE uid = $1::uuid AND team_uid = ANY($2::uuid[]) ${lock}`,
    [uid, teams],
  );
  if (!rows[0]) throw notFound("agent");
  return rows[0];
}

/** Returns the agents of the teams, optionally of one factory only, newest first. */
export async function listAgents(sql: Sql, teams: readonly string[], factoryUid?: string): Promise<Agent[]> {
  const { rows } = await sql.query<Agent>(
    `SELECT ${COLUMNS} FROM agents WHERE team_uid = ANY($1::uuid[]) AND ($2::uuid IS NULL OR factory_uid = $2::uuid) ORDER BY created_at DESC, uid`,
    [teams, factoryUid ?? null],
  );
  return rows;
}

/** Returns the agents of one factory, ordered by name. */
export async function factoryAgents(
  sql: Sql,
  teamUid: string,
  factoryUid: string,
  lock: "" | "FOR UPDATE" = "",
): Promise<Agent[]> {
  const { rows } = await sql.query<Agent>(
    `SELECT ${COLUMNS} FROM agents WHERE team_uid = $1::uuid AND factory_uid = $2::uuid ORDER BY name ${lock}`,
    [teamUid, factoryUid],
  );
  return rows;
}

/**
 * Inserts or updates an agent. Errors: agent_name_taken, foreman_exists (both invalid_argument; within one factory).
 */
export async function saveAgent(sql: Sql, agent: Agent): Promise<void> {
  try {
    await sql.query(
      `INSERT INTO agents (uid, team_uid, factory_uid, name, agent_type, description, prompt, config, enabled, file_managed, concurrency_limit, queue_priority, queue_paused,
                           version, created_at, updated_at)
       VALUES ($1::uuid, $2::uuid, $3::uuid, $4, $5, $6, $7, $8::jsonb, $9, $10, $11, $12, $13, $14, $15::timestamptz, $16::timestamptz)
       ON CONFLICT (uid) DO UPDATE SET name = excluded.name, agent_type = excluded.agent_type, description = excluded.description, prompt = excluded.prompt,
         config = excluded.config, enabled = excluded.enabled, file_managed = excluded.file_managed, concurrency_limit = excluded.concurrency_limit,
         queue_priority = excluded.queue_priority, queue_paused = excluded.queue_paused, version = excluded.version, updated_at = excluded.updated_at`,
      [
        ...[
          agent.uid,
          agent.teamUid,
          agent.factoryUid,
          agent.name,
          agent.agentType,
          agent.description,
          agent.prompt,
          JSON.stringify(agent.config),
        ],
        ...[
          agent.enabled,
          agent.fileManaged,
          agent.concurrencyLimit,
          agent.queuePriority,
          agent.queuePaused,
          agent.version,
          agent.createdAt,
          agent.updatedAt,
        ],
      ],
    );
  } catch (error) {
    if (!isUniqueViolation(error)) throw error;
    if (agent.agentType === "FOREMAN")
      throw invalidArgument(
        "foreman_exists",
        `The factory already has a foreman, or an agent named "${agent.name}". Choose another name or type.`,
      );
    throw invalidArgument(
      "agent_name_taken",
      `The factory already has an agent named "${agent.name}". Choose another name.`,
    );
  }
}

/**
 * Deletes an agent and, by cascade in the same statement, its keys. Returns the uids of the keys. The agent's name and
 * team are preserved in `former_agents`.
 */
export async function deleteAgentRow(sql: Sql, uid: string): Promise<string[]> {
  const { rows } = await sql.query<{ uid: string }>("SELECT uid FROM api_keys WHERE agent_uid = $1::uuid FOR UPDATE", [
    uid,
  ]);
  await sql.query(
    `WITH deleted AS (DELETE FROM agents WHERE uid = $1::uuid RETURNING uid, team_uid, name)
     INSERT INTO former_agents (uid, team_uid, name) SELECT uid, team_uid, name FROM deleted`,
    [uid],
  );
  return rows.map((row) => row.uid);
}
