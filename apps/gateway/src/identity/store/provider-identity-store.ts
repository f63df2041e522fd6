import type { Sql } from "@millwright/database";
import type { Tx } from "./identity-db.ts";

/** A person's account at a provider, which the provider has confirmed. */
export type ProvedIdentity = { issuer: string; subject: string; verifiedEmail: string | undefined };

/** Returns the uid of the person with an identity, and locks the person until the transaction ends. */
export async function findUserOfIdentity(
  { sql }: Tx,
  { issuer, subject }: Pick<ProvedIdentity, "issuer" | "subject">,
): Promise<string | undefined> {
  const { rows } = await sql.query<{ uid: string }>(
    `SELECT u.uid
       FROM provider_identities i
       JOIN users u ON u.uid = i.user_uid
      WHERE i.issuer = $1 AND i.subject = $2
        FOR UPDATE OF u`,
    [issuer, subject],
  );
  return rows[0]?.uid;
}

/** End of the addresses of accounts whose provider has not verified one. No one can receive mail there. */
export const UNVERIFIED = "@unverified.invalid";

/**
 * Inserts the identity of a person, or records its use with the address that the provider has verified now. An account
 * without a verified address gets it, unless another account has it.
 */
export async function saveIdentity(
  { sql }: Tx,
  userUid: string,
  { issuer, subject, verifiedEmail }: ProvedIdentity,
  now: Date,
): Promise<void> {
  await sql.query(
    `INSERT INTO provider_identities (issuer, subject, user_uid, verified_email, created_at, last_used_at)
     VALUES ($1, $2, $3, $4, $5, $5)
     ON CONFLICT (issuer, subject) DO UPDATE SET verified_email = $4, last_used_at = $5`,
    [issuer, subject, userUid, verifiedEmail ?? null, now],
  );
  if (verifiedEmail !== undefined)
    await sql.query(
      `UPDATE users
          SET email = $2
        WHERE uid = $1 AND email LIKE '%' || $3 AND NOT EXISTS (SELECT 1 FROM users WHERE email = $2)`,
      [userUid, verifiedEmail, UNVERIFIED],
    );
}

/** Returns whether a provider has verified that an e-mail address is the person's. */
export async function hasVerifiedEmail({ sql }: Tx, userUid: string, email: string): Promise<boolean> {
  const { rows } = await sql.query(
    "SELECT 1 FROM provider_identities WHERE user_uid = $1 AND verified_email = $2 LIMIT 1",
    [userUid, email],
  );
  return rows.length > 0;
}

/** An account with an e-mail address, as far as it matters for connecting an identity to it. */
export type AccountToConnect = { uid: string; hasKey: boolean; hasIdentity: boolean };

/** Returns the account of an e-mail address, and locks it until the transaction ends. */
export async function findAccountToConnect({ sql }: Tx, email: string): Promise<AccountToConnect | undefined> {
  const { rows: locked } = await sql.query("SELECT uid FROM users WHERE email = $1 FOR UPDATE", [email]);
  if (locked.length === 0) return undefined;
  const { rows } = await sql.query<AccountToConnect>(
    `SELECT u.uid,
            EXISTS (SELECT 1 FROM api_keys k WHERE k.user_uid = u.uid) AS "hasKey",
            EXISTS (SELECT 1 FROM provider_identities i WHERE i.user_uid = u.uid) AS "hasIdentity"
       FROM users u
      WHERE u.email = $1`,
    [email],
  );
  return rows[0];
}

/** Returns the uids of teams by uid or name. Names that several teams have are absent. */
export async function findTeamsByText(sql: Sql, texts: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const { rows } = await sql.query<{ text: string; uid: string }>(
    `SELECT t.text, min(teams.uid::text) AS uid
       FROM unnest($1::text[]) AS t (text)
       JOIN teams ON teams.uid::text = lower(t.text) OR teams.name = t.text
      GROUP BY t.text
     HAVING count(*) = 1`,
    [texts],
  );
  return new Map(rows.map(({ text, uid }) => [text, uid]));
}
