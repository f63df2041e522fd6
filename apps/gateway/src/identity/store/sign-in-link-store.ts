import type { Sql } from "@millwright/database";

/** Inserts a link, and deletes expired ones. */
export async function insertSignInLink(
  sql: Sql,
  link: { tokenHash: string; userUid: string; now: Date; expiresAt: Date },
): Promise<void> {
  await sql.query("DELETE FROM sign_in_links WHERE expires_at <= $1", [link.now]);
  await sql.query("INSERT INTO sign_in_links (token_hash, user_uid, expires_at) VALUES ($1, $2, $3)", [
    link.tokenHash,
    link.userUid,
    link.expiresAt,
  ]);
}

/** Returns the name of the person whom a link signs in, or undefined if it is not valid. */
export async function findSignInLink(sql: Sql, tokenHash: string, now: Date): Promise<string | undefined> {
  const { rows } = await sql.query<{ name: string }>(
    `SELECT u.display_name AS name
       FROM sign_in_links l
       JOIN users u ON u.uid = l.user_uid
      WHERE l.token_hash = $1 AND l.expires_at > $2`,
    [tokenHash, now],
  );
  return rows[0]?.name;
}

/** Deletes a link and returns the uid of its person, or undefined if it is not valid. Only one caller gets the uid. */
export async function takeSignInLink(sql: Sql, tokenHash: string, now: Date): Promise<string | undefined> {
  const { rows } = await sql.query<{ uid: string }>(
    "DELETE FROM sign_in_links WHERE token_hash = $1 AND expires_at > $2 RETURNING user_uid AS uid",
    [tokenHash, now],
  );
  return rows[0]?.uid;
}
