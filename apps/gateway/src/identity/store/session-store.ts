import type { Sql } from "@millwright/database";

export type NewSession = {
  uid: string;
  tokenHash: string;
  userUid: string | null;
  keyUid: string | null;
  now: Date;
  expiresAt: Date;
};

export async function insertSession(sql: Sql, session: NewSession): Promise<void> {
  await sql.query(
    `INSERT INTO sessions (uid, token_hash, user_uid, key_uid, created_at, rotated_at, last_used_at, expires_at)
     VALUES ($1, $2, $3, $4, $5, $5, $5, $6)`,
    [session.uid, session.tokenHash, session.userUid, session.keyUid, session.now, session.expiresAt],
  );
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
export async function deleteSessionOf(sql: Sql, tokenHash: string): Promise<void> {
  await sql.query("DELETE FROM sessions WHERE token_hash = $1 OR previous_hash = $1", [tokenHash]);
}

/** Deletes all sessions of a person, including those with the person's keys, or those of a key. */
export async function deleteSessionsOf(sql: Sql, owner: { userUid: string } | { keyUid: string }): Promise<void> {
  if ("userUid" in owner) await sql.query("DELETE FROM sessions WHERE user_uid = $1", [owner.userUid]);
  else await sql.query("DELETE FROM sessions WHERE key_uid = $1", [owner.keyUid]);
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
