import type { Principal } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import type { DaySpend, Grant } from "../domain/credit-balance.ts";

export type CreditGrant = Grant & {
  readonly uid: string;
  readonly teamUid: string;
  readonly note: string;
  readonly createdBy: Pick<Principal, "type" | "uid">;
};
export type GrantPosition = { readonly grantedAt: string; readonly uid: string };

type GrantRow = {
  uid: string;
  team_uid: string;
  micros: string;
  note: string;
  granted_at: Date;
  expires_at: Date | null;
  created_by_type: Principal["type"];
  created_by_uid: string;
};
const COLUMNS = "uid, team_uid, micros::text, note, granted_at, expires_at, created_by_type, created_by_uid";

/** Credits of teams, and what teams have spent. */
export const creditStore = {
  /** Inserts a grant. */
  async insert(tx: Sql, grant: CreditGrant): Promise<void> {
    await tx.query(
      `INSERT INTO credit_grants (uid, team_uid, micros, note, granted_at, expires_at, created_by_type, created_by_uid)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
      [
        ...[grant.uid, grant.teamUid, String(grant.micros), grant.note],
        ...[grant.grantedAt, grant.expiresAt ?? null, grant.createdBy.type, grant.createdBy.uid],
      ],
    );
  },

  /** Returns a grant. The caller knows that it exists. */
  async get(sql: Sql, uid: string): Promise<CreditGrant> {
    const { rows } = await sql.query<GrantRow>(`SELECT ${COLUMNS} FROM credit_grants WHERE uid = $1`, [uid]);
    return toGrant(rows[0]!);
  },

  /** Lists a team's grants after a position, newest first, ties by uid. */
  async list(sql: Sql, teamUid: string, after: GrantPosition | undefined, limit: number): Promise<CreditGrant[]> {
    const { rows } = await sql.query<GrantRow>(
      `SELECT ${COLUMNS}
         FROM credit_grants
        WHERE team_uid = $1
          AND ($2::timestamptz IS NULL OR granted_at < $2 OR (granted_at = $2 AND uid > $3::uuid))
        ORDER BY granted_at DESC, uid
        LIMIT $4`,
      [teamUid, after?.grantedAt ?? null, after?.uid ?? null, limit],
    );
    return rows.map(toGrant);
  },

  /** Returns all grants of a team. */
  async all(sql: Sql, teamUid: string): Promise<CreditGrant[]> {
    const { rows } = await sql.query<GrantRow>(`SELECT ${COLUMNS} FROM credit_grants WHERE team_uid = $1`, [teamUid]);
    return rows.map(toGrant);
  },

  /**
   * Returns what all factories of a team have spent per UTC day since a time. The factories are found by skipping
   * through the index.
   */
  async spendPerDay(sql: Sql, teamUid: string, since: Date): Promise<DaySpend[]> {
    const { rows } = await sql.query<{ day: string; micros: string }>(
      `WITH RECURSIVE factories AS (
         (SELECT factory_uid FROM run_facts WHERE team_uid = $1 ORDER BY factory_uid LIMIT 1)
         UNION ALL
         SELECT (SELECT f.factory_uid FROM run_facts f
                  WHERE f.team_uid = $1 AND f.factory_uid > factories.factory_uid ORDER BY f.factory_uid LIMIT 1)
           FROM factories WHERE factories.factory_uid IS NOT NULL)
       SELECT day::text, sum(inference_micros + compute_micros + platform_micros)::text AS micros
         FROM factories
         JOIN cost_group_days USING (factory_uid)
        WHERE dimension = 'source' AND day >= utc_day($2)
        GROUP BY day`,
      [teamUid, since],
    );
    return rows.map(({ day, micros }) => ({ day: new Date(day), micros: BigInt(micros) }));
  },
};

const toGrant = (row: GrantRow): CreditGrant => ({
  uid: row.uid,
  teamUid: row.team_uid,
  micros: BigInt(row.micros),
  note: row.note,
  grantedAt: row.granted_at,
  expiresAt: row.expires_at ?? undefined,
  createdBy: { type: row.created_by_type, uid: row.created_by_uid },
});
