import type { Database, Sql } from "@millwright/database";
import type { Scorer } from "../domain/scorer.ts";
import { SCORER_COLUMNS, toScorer, type ScorerRow } from "./scorer-rows.ts";

export type FinishedRun = {
  readonly runUid: string;
  readonly teamUid: string;
  readonly version: number;
  readonly finishedAt: Date;
};

/** SQL condition for scorers that score finished runs automatically. */
const AUTOMATIC = "s.kind = 'user' AND s.enabled AND s.sampling_rate > 0";

/** Returns the teams that have a scorer with automatic scoring. */
export async function teamsThatScore(tx: Sql, teamUids: readonly string[]): Promise<Set<string>> {
  const { rows } = await tx.query<{ team_uid: string }>(
    `SELECT DISTINCT s.team_uid FROM scorers s WHERE s.team_uid = ANY ($1::uuid[]) AND ${AUTOMATIC}`,
    [teamUids],
  );
  return new Set(rows.map((row) => row.team_uid));
}

/** Records runs that wait for their cool-down. A later end of the same run replaces the earlier one. */
export async function noteFinishedRuns(tx: Sql, runs: readonly FinishedRun[]): Promise<void> {
  await tx.query(
    `INSERT INTO finished_runs (run_uid, team_uid, version, finished_at)
     SELECT DISTINCT ON (r.run_uid) r.run_uid, r.team_uid, r.version, r.finished_at
       FROM jsonb_to_recordset($1::jsonb) AS r (run_uid uuid, team_uid uuid, version bigint, finished_at timestamptz)
      ORDER BY r.run_uid, r.version DESC
     ON CONFLICT (run_uid) DO UPDATE SET version = excluded.version, finished_at = excluded.finished_at WHERE finished_runs.version < excluded.version`,
    [
      JSON.stringify(
        runs.map(({ runUid, teamUid, version, finishedAt }) => ({
          run_uid: runUid,
          team_uid: teamUid,
          version,
          finished_at: finishedAt,
        })),
      ),
    ],
  );
}

/** Deletes runs that were evaluated, unless they have ended again since. */
export async function forgetFinishedRuns(
  tx: Sql,
  runs: readonly { readonly runUid: string; readonly version: number }[],
): Promise<void> {
  await tx.query(
    `DELETE FROM finished_runs f USING jsonb_to_recordset($1::jsonb) AS r (run_uid uuid, version bigint) WHERE f.run_uid = r.run_uid AND f.version <= r.version`,
    [JSON.stringify(runs.map(({ runUid, version }) => ({ run_uid: runUid, version })))],
  );
}

/**
 * Returns the factories' scorers with automatic scoring, locked against changes and deletion until the transaction
 * ends.
 */
export const lockAutomaticScorers = (tx: Sql, factoryUids: readonly string[]): Promise<Scorer[]> =>
  select(tx, `s.factory_uid = ANY ($1::uuid[]) AND ${AUTOMATIC}`, [factoryUids], "FOR SHARE");

/**
 * Returns these scorers of a factory, without unknown ones, locked against changes and deletion until the transaction
 * ends.
 */
export const lockScorers = (tx: Sql, factoryUid: string, uids: readonly string[]): Promise<Scorer[]> =>
  select(tx, "s.factory_uid = $1 AND s.uid = ANY ($2::uuid[])", [factoryUid, uids], "FOR SHARE");

/** Reads scorers without locks. */
export function scorerReader(database: Database) {
  return {
    listByUids: (factoryUid: string, uids: readonly string[]): Promise<Scorer[]> =>
      select(database.sql, "s.factory_uid = $1 AND s.uid = ANY ($2::uuid[])", [factoryUid, uids]),
    find: async (uid: string): Promise<Scorer | undefined> => (await select(database.sql, "s.uid = $1", [uid]))[0],
  };
}

export type ScorerReader = ReturnType<typeof scorerReader>;

async function select(
  sql: Sql,
  where: string,
  params: readonly unknown[],
  lock: "" | "FOR SHARE" = "",
): Promise<Scorer[]> {
  const { rows } = await sql.query<ScorerRow>(
    `SELECT ${SCORER_COLUMNS} FROM scorers s WHERE ${where} ORDER BY s.uid ${lock}`,
    params,
  );
  return rows.map(toScorer);
}
