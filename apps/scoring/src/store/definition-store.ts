import type { Sql } from "@millwright/database";
import type { BenchmarkPart, ScorerPart } from "@millwright/definition";
import type { Scorer } from "../domain/scorer.ts";
import { SCORER_COLUMNS, toScorer, type ScorerRow } from "./scorer-rows.ts";

/** The part of a definition that this service owns. */
export type DefinedPart = { readonly scorers: readonly ScorerPart[]; readonly suites: readonly BenchmarkPart[] };
export type Stage = {
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly version: number;
  readonly part: DefinedPart;
};

/** Stores a version without effect on the active one. Replaces an earlier stage of the same version. */
export async function saveStage(sql: Sql, { factoryUid, teamUid, version, part }: Stage, now: Date): Promise<void> {
  await sql.query(
    `INSERT INTO definition_stages (factory_uid, version, team_uid, part, staged_at) VALUES ($1, $2, $3, $4::jsonb, $5)
     ON CONFLICT (factory_uid, version) DO UPDATE SET part = excluded.part, staged_at = excluded.staged_at`,
    [factoryUid, version, teamUid, JSON.stringify(part), now],
  );
}

export async function dropStage(sql: Sql, factoryUid: string, version: number): Promise<void> {
  await sql.query("DELETE FROM definition_stages WHERE factory_uid = $1 AND version = $2", [factoryUid, version]);
}

/** Returns the stage of a version, or undefined. */
export async function findStage(sql: Sql, factoryUid: string, version: number): Promise<Stage | undefined> {
  const {
    rows: [row],
  } = await sql.query<{ team_uid: string; part: DefinedPart }>(
    "SELECT team_uid, part FROM definition_stages WHERE factory_uid = $1 AND version = $2",
    [factoryUid, version],
  );
  return row && { factoryUid, version, teamUid: row.team_uid, part: row.part };
}

/** Returns the active version (0: none) and locks activations of the factory until the transaction ends. */
export async function lockActivation(tx: Sql, factoryUid: string): Promise<number> {
  await tx.query("SELECT pg_advisory_xact_lock(hashtextextended('definition ' || $1::text, 0))::text", [factoryUid]);
  const { rows } = await tx.query<{ version: number }>(
    "SELECT version FROM definition_versions WHERE factory_uid = $1",
    [factoryUid],
  );
  return rows[0]?.version ?? 0;
}

/** Sets the active version and deletes the stages up to it. */
export async function closeStage(tx: Sql, factoryUid: string, version: number): Promise<void> {
  await tx.query(
    "INSERT INTO definition_versions (factory_uid, version) VALUES ($1, $2) ON CONFLICT (factory_uid) DO UPDATE SET version = excluded.version",
    [factoryUid, version],
  );
  await tx.query("DELETE FROM definition_stages WHERE factory_uid = $1 AND version <= $2", [factoryUid, version]);
}

/** Deletes the stages and the active version of a deleted factory. */
export async function deleteDefinitions(tx: Sql, factoryUid: string): Promise<void> {
  await tx.query("DELETE FROM definition_stages WHERE factory_uid = $1", [factoryUid]);
  await tx.query("DELETE FROM definition_versions WHERE factory_uid = $1", [factoryUid]);
}

/** Returns the scorers of a factory with the number of their scores. */
export async function knownScorers(
  sql: Sql,
  factoryUid: string,
): Promise<{ slug: string | null; name: string; scoreCount: number }[]> {
  const { rows } = await sql.query<{ slug: string | null; name: string; count: number }>(
    `SELECT s.slug, s.name, (SELECT coalesce(sum(c.scores), 0)::bigint FROM score_counts c WHERE c.scorer_uid = s.uid) AS count
       FROM scorers s WHERE s.factory_uid = $1 ORDER BY s.slug, s.name`,
    [factoryUid],
  );
  return rows.map((row) => ({ slug: row.slug, name: row.name, scoreCount: row.count }));
}

/** Locks all scorers of a factory, ordered by uid. */
export async function lockScorersOf(tx: Sql, factoryUid: string): Promise<Scorer[]> {
  const { rows } = await tx.query<ScorerRow>(
    `SELECT ${SCORER_COLUMNS} FROM scorers s WHERE s.factory_uid = $1 ORDER BY s.uid FOR UPDATE`,
    [factoryUid],
  );
  return rows.map(toScorer);
}

/** Returns the suites of a factory with the number of their benchmark runs. */
export async function knownSuites(
  sql: Sql,
  factoryUid: string,
): Promise<{ slug: string | null; name: string; runCount: number }[]> {
  const { rows } = await sql.query<{ slug: string | null; name: string; count: number }>(
    `SELECT s.slug, s.name, (SELECT count(*) FROM benchmark_runs b WHERE b.suite_uid = s.uid) AS count
       FROM suites s WHERE s.factory_uid = $1 AND s.deleted_at IS NULL ORDER BY s.slug, s.name`,
    [factoryUid],
  );
  return rows.map((row) => ({ slug: row.slug, name: row.name, runCount: row.count }));
}

/** Gives locked scorers temporary names, so that scorers of files can swap names. */
export async function clearScorerNames(tx: Sql, uids: readonly string[]): Promise<void> {
  if (uids.length > 0) await tx.query("UPDATE scorers SET name = uid::text WHERE uid = ANY ($1::uuid[])", [uids]);
}
