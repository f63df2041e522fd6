import type { Clock } from "@millwright/clock";
import { Batcher, type Database, type Sql } from "@millwright/database";
import type { Role } from "../domain/roles.ts";

/** A session, and the hash of the token that the request came with. */
export type SessionOfRequest = { uid: string; tokenHash: string; rotatedAt: Date; expiresAt: Date };

/** A key or a session that is currently valid, with its owner. */
export type Credential = {
  /** The key. For a session without one, the session. */
  keyUid: string;
  kind: "api" | "worker";
  teamUid: string | null;
  allTeams: boolean;
  /** Whether the key gives access to resources that its user owns personally. */
  personal: boolean;
  scopes: string[] | null;
  user: {
    uid: string;
    email: string;
    displayName: string;
    platformAdmin: boolean;
    memberships: { teamUid: string; role: Role }[];
  } | null;
  agent: { uid: string; name: string; teamUid: string } | null;
  expiresAt: Date | null;
  lastUsedAt: Date | null;
  /** The session that the request came with, if any. */
  session?: SessionOfRequest;
};

/** Returns the statement that reads credentials from `source`, which has the columns of `api_keys`. */
const credentialsOf = (source: string, columns: string): string => `
  SELECT ${columns}, k.uid AS "keyUid", k.kind, k.team_uid AS "teamUid", k.all_teams AS "allTeams", k.personal, k.scopes, k.expires_at AS "expiresAt", k.last_used_at AS "lastUsedAt",
         CASE WHEN u.uid IS NOT NULL THEN jsonb_build_object(
           'uid', u.uid, 'email', u.email, 'displayName', u.display_name, 'platformAdmin', u.platform_admin,
           'memberships', coalesce((SELECT jsonb_agg(jsonb_build_object('teamUid', m.team_uid, 'role', m.role) ORDER BY m.created_at, m.team_uid)
                                      FROM memberships m WHERE m.user_uid = u.uid AND (k.all_teams OR m.team_uid = k.team_uid)), '[]')) END AS "user",
         CASE WHEN a.uid IS NOT NULL THEN jsonb_build_object('uid', a.uid, 'name', a.name, 'teamUid', a.team_uid) END AS agent
    FROM ${source} k
    LEFT JOIN users u ON u.uid = k.user_uid
    LEFT JOIN agents a ON a.uid = k.agent_uid
   WHERE (k.expires_at IS NULL OR k.expires_at > $2) AND (k.agent_uid IS NULL OR a.enabled)`;

/**
 * One indexed read per request (unique hash, then primary keys). Nothing is cached, so revocation is immediate.
 * Hand-written SQL for speed.
 */
const FIND = `${credentialsOf("api_keys", "k.hash")} AND k.hash = ANY($1::text[])`;

/** The same for the session of a token's hash. A session without a key has all rights of its person. */
const FIND_BY_SESSION = credentialsOf(
  `(SELECT s.uid AS session_uid, s.rotated_at, s.expires_at AS session_expires_at, s.last_used_at, s.user_uid,
           coalesce(k.uid, s.uid) AS uid, coalesce(k.kind, 'api') AS kind, k.team_uid, k.agent_uid, k.scopes, k.expires_at,
           coalesce(k.all_teams, true) AS all_teams, coalesce(k.personal, true) AS personal
      FROM sessions s
      LEFT JOIN api_keys k ON k.uid = s.key_uid
     WHERE (s.token_hash = $1 OR (s.previous_hash = $1 AND (s.previous_until IS NULL OR s.previous_until > $2)))
       AND s.expires_at > $2
       AND s.last_used_at > $3)`,
  `k.session_uid AS "sessionUid", k.rotated_at AS "rotatedAt", k.session_expires_at AS "sessionExpiresAt"`,
);

/**
 * Returns a function that reads the credential of a key's hash, or undefined if no valid key has the hash. Concurrent
 * requests share one read.
 */
export function credentialReader(
  { lookups }: Pick<Database, "lookups">,
  clock: Clock,
): (hash: string) => Promise<Credential | undefined> {
  const credentials = new Batcher(async (hashes: readonly string[]) => {
    const { rows } = await lookups.query<Credential & { hash: string }>(FIND, [[...new Set(hashes)], clock.now()]);
    const found = new Map(rows.map(({ hash, ...credential }) => [hash, credential]));
    return hashes.map((hash) => found.get(hash));
  });
  return (hash) => credentials.add(hash);
}

/** Returns the credential of a session's token, or undefined unless the session is valid and used after `idleSince`. */
export async function findCredentialOfSession(
  { lookups }: Pick<Database, "lookups">,
  tokenHash: string,
  now: Date,
  idleSince: Date,
): Promise<(Credential & { session: SessionOfRequest }) | undefined> {
  type Row = Omit<Credential, "session"> & { sessionUid: string; rotatedAt: Date; sessionExpiresAt: Date };
  const { rows } = await lookups.query<Row>(FIND_BY_SESSION, [tokenHash, now, idleSince]);
  if (!rows[0]) return undefined;
  const { sessionUid: uid, rotatedAt, sessionExpiresAt, ...credential } = rows[0];
  return { ...credential, session: { uid, tokenHash, rotatedAt, expiresAt: sessionExpiresAt } };
}

/** Records the use of a key, at most once a minute, so that concurrent requests do not contend for its row. */
export async function recordUse(sql: Sql, keyUid: string, now: Date): Promise<void> {
  await sql.query(
    `UPDATE api_keys SET last_used_at = $2 WHERE uid = $1 AND (last_used_at IS NULL OR last_used_at < $2::timestamptz - interval '1 minute')`,
    [keyUid, now],
  );
}
