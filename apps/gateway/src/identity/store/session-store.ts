import type { Sql } from "@millwright/database";

export type NewSession = {
  uid: string;
  tokenHash: string;
  userUid: string | null;
  keyUid: string | null;
  now: Date;
  expiresAt: Date;
};

/** A session in one of the teams in which its principal acts. */
export type SessionInTeam = {
  readonly uid: string;
  readonly teamUid: string;
  readonly actorType: "user" | "agent" | "worker";
  readonly actorUid: string;
};

/** Returns the statement that changes sessions, and selects them once for each of their teams. */
const inTeams = (change: string): string => `
  WITH changed AS (${change} RETURNING uid, user_uid, key_uid)
  SELECT s.uid, t.team_uid AS "teamUid", coalesce(s.user_uid, k.agent_uid, k.uid) AS "actorUid",
         CASE WHEN s.user_uid IS NOT NULL THEN 'user' WHEN k.agent_uid IS NOT NULL THEN 'agent' ELSE 'worker' END AS "actorType"
    FROM changed s
    LEFT JOIN api_keys k ON k.uid = s.key_uid
    JOIN LATERAL (
           SELECT m.team_uid
             FROM memberships m
            WHERE m.user_uid = s.user_uid AND (k.uid IS NULL OR k.all_teams OR m.team_uid = k.team_uid)
            UNION ALL
           SELECT k.team_uid
            WHERE s.user_uid IS NULL AND k.team_uid IS NOT NULL) t ON true`;

export async function insertSession(sql: Sql, session: NewSession): Promise<SessionInTeam[]> {
  const { rows } = await sql.query<SessionInTeam>(
    inTeams(`
    INSERT INTO sessions (uid, token_hash, user_uid, key_uid, created_at, rotated_at, last_used_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $5, $5, $6)`),
    [session.uid, session.tokenHash, session.userUid, session.keyUid, session.now, session.expiresAt],
  );
  return rows;
}

/**
 * Records the use of a session and of its key. The first recorded use of a rotated token ends the one before at
 * `previousUntil`.
 */
export async function recordSessionUse(
  sql: Sql,
  used: { uid: string; tokenHash: string; now: Date; previousUntil: Date },
): Promise<void> {
  await sql.query(
    `WITH session AS (
       UPDATE sessions
          SET last_used_at   = $3,
              previous_until = CASE WHEN token_hash = $2 THEN coalesce(previous_until, $4) ELSE previous_until END
        WHERE uid = $1
       RETURNING key_uid)
     UPDATE api_keys SET last_used_at = $3 FROM session WHERE api_keys.uid = session.key_uid`,
    [used.uid, used.tokenHash, used.now, used.previousUntil],
  );
}

/**
 * Replaces the token of a session. The presented token stays valid until the new one has been used. Returns false if
 * another request has rotated the session since `rotatedAt`.
 */
export async function rotateSession(
  sql: Sql,
  rotation: { uid: string; presentedHash: string; newHash: string; rotatedAt: Date; now: Date },
): Promise<boolean> {
  const { rows } = await sql.query(
    `UPDATE sessions
        SET token_hash = $3, previous_hash = $2, previous_until = NULL, rotated_at = $5
      WHERE uid = $1 AND rotated_at = $4
     RETURNING uid`,
    [rotation.uid, rotation.presentedHash, rotation.newHash, rotation.rotatedAt, rotation.now],
  );
  return rows.length > 0;
}

/** Deletes the session of a token's hash. */
export async function deleteSessionOf(sql: Sql, tokenHash: string): Promise<SessionInTeam[]> {
  const text = inTeams("DELETE FROM sessions WHERE token_hash = $1 OR previous_hash = $1");
  return (await sql.query<SessionInTeam>(text, [tokenHash])).rows;
}

/** Deletes all sessions of a person, including those with the person's keys, or those of a key. */
export async function deleteSessionsOf(
  sql: Sql,
  owner: { userUid: string } | { keyUid: string },
): Promise<SessionInTeam[]> {
  const [column, uid] = "userUid" in owner ? ["user_uid", owner.userUid] : ["key_uid", owner.keyUid];
  return (await sql.query<SessionInTeam>(inTeams(`DELETE FROM sessions WHERE ${column} = $1`), [uid])).rows;
}

/** Deletes sessions that have expired, or were not used after `idleSince`. */
export async function deleteExpiredSessions(sql: Sql, now: Date, idleSince: Date): Promise<void> {
  await sql.query("DELETE FROM sessions WHERE expires_at <= $1 OR last_used_at <= $2", [now, idleSince]);
}

/** Deletes the sessions without a key of a person who is in no team. */
export async function deleteSessionsWithoutTeam(sql: Sql, userUid: string): Promise<void> {
  await sql.query(
    `DELETE FROM sessions
      WHERE user_uid = $1 AND key_uid IS NULL
        AND NOT EXISTS (SELECT 1 FROM memberships WHERE memberships.user_uid = $1)`,
    [userUid],
  );
}
