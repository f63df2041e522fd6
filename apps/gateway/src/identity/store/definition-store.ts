import type { JsonObject } from "@bufbuild/protobuf";
import type { Sql } from "@millwright/database";
import type { DefinitionPart } from "../domain/definition-part.ts";

export type FactoryLayer = { teamUid: string; version: number; config: JsonObject };

/**
 * Serialises changes of one factory's definition until the transaction ends. It is an advisory lock, so it also works
 * before the factory's first row exists.
 */
export async function lockFactory(sql: Sql, factoryUid: string): Promise<void> {
  await sql.query("SELECT pg_advisory_xact_lock(hashtextextended('definition ' || $1::text, 0))::text", [factoryUid]);
}

export async function findLayer(sql: Sql, factoryUid: string): Promise<FactoryLayer | undefined> {
  const { rows } = await sql.query<FactoryLayer>(
    `SELECT team_uid AS "teamUid", version, config FROM factory_layers WHERE factory_uid = $1::uuid`,
    [factoryUid],
  );
  return rows[0];
}

export async function saveLayer(
  sql: Sql,
  layer: { factoryUid: string; teamUid: string; version: number; config: JsonObject },
  now: Date,
): Promise<void> {
  await sql.query(
    `INSERT INTO factory_layers (factory_uid, team_uid, version, config, updated_at) VALUES ($1::uuid, $2::uuid, $3, $4::jsonb, $5::timestamptz)
     ON CONFLICT (factory_uid) DO UPDATE SET version = excluded.version, config = excluded.config, updated_at = excluded.updated_at`,
    [layer.factoryUid, layer.teamUid, layer.version, JSON.stringify(layer.config), now],
  );
}

export type Stage = { factoryUid: string; version: number; teamUid: string; part: DefinitionPart };

/** Stores a version without effect on the active one. Replaces an earlier stage of the same version. */
export async function saveStage(sql: Sql, { factoryUid, version, teamUid, part }: Stage, now: Date): Promise<void> {
  await sql.query(
    `INSERT INTO definition_stages (factory_uid, version, team_uid, definition, created_at) VALUES ($1::uuid, $2, $3::uuid, $4::jsonb, $5::timestamptz)
     ON CONFLICT (factory_uid, version) DO UPDATE SET definition = excluded.definition, created_at = excluded.created_at`,
    [factoryUid, version, teamUid, JSON.stringify(part), now],
  );
}

export async function findStage(sql: Sql, factoryUid: string, version: number): Promise<Stage | undefined> {
  const { rows } = await sql.query<{ teamUid: string; part: DefinitionPart }>(
    `SELECT team_uid AS "teamUid", definition AS part FROM definition_stages WHERE factory_uid = $1::uuid AND version = $2`,
    [factoryUid, version],
  );
  return rows[0] && { factoryUid, version, ...rows[0] };
}

/** Returns the names of foremen in the staged versions of a factory. */
export async function stagedForemen(sql: Sql, factoryUid: string): Promise<string[]> {
  const { rows } = await sql.query<{ name: string }>(
    `SELECT DISTINCT agent->>'name' AS name FROM definition_stages s, jsonb_array_elements(s.definition->'agents') agent
      WHERE s.factory_uid = $1::uuid AND agent->>'agentType' = 'FOREMAN'`,
    [factoryUid],
  );
  return rows.map(({ name }) => name);
}

/** Deletes the stage of one version, or of all versions up to one. */
export async function dropStages(
  sql: Sql,
  factoryUid: string,
  versions: { only: number } | { upTo: number },
): Promise<void> {
  const [comparison, version] = "only" in versions ? ["=", versions.only] : ["<=", versions.upTo];
  await sql.query(`DELETE FROM definition_stages WHERE factory_uid = $1::uuid AND version ${comparison} $2`, [
    factoryUid,
    version,
  ]);
}

export async function deleteFactoryRows(sql: Sql, factoryUid: string): Promise<void> {
  await sql.query("DELETE FROM definition_stages WHERE factory_uid = $1::uuid", [factoryUid]);
  await sql.query("DELETE FROM factory_layers WHERE factory_uid = $1::uuid", [factoryUid]);
}
