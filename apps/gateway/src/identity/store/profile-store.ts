import type { Sql } from "@millwright/database";

/** Public profile of a user or agent. */
export type Profile = { type: "user" | "service_account"; uid: string; displayName: string; email?: string };

/**
 * Returns users first, then agents. Deleted agents are included unless the query is restricted to teams. One
 * hand-written statement, because every response that contains a run executes it.
 */
const FIND = `
  SELECT 'user' AS type, u.uid, u.display_name AS "displayName", u.email FROM users u
   WHERE (u.uid = ANY($1::uuid[]) OR u.email = ANY($2::text[]))
     AND ($3::uuid[] IS NULL OR EXISTS (SELECT 1 FROM memberships m WHERE m.user_uid = u.uid AND m.team_uid = ANY($3::uuid[])))
   UNION ALL
  SELECT 'service_account', a.uid, a.name, NULL FROM agents a
   WHERE a.uid = ANY($1::uuid[]) AND ($3::uuid[] IS NULL OR a.team_uid = ANY($3::uuid[]))
   UNION ALL
  SELECT 'service_account', f.uid, f.name, NULL FROM former_agents f WHERE f.uid = ANY($1::uuid[]) AND $3::uuid[] IS NULL`;

export async function findProfiles(
  sql: Sql,
  query: { uids: readonly string[]; emails: readonly string[]; teamUids: readonly string[] | undefined },
): Promise<Profile[]> {
  const { rows } = await sql.query<Omit<Profile, "email"> & { email: string | null }>(FIND, [
    query.uids,
    query.emails,
    query.teamUids ?? null,
  ]);
  return rows.map(({ email, ...profile }) => ({ ...profile, email: email ?? undefined }));
}
