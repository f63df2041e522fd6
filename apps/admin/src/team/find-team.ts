import { withClient, valuesOf } from "../databases.ts";
import { UsageError } from "../command.ts";
import type { PlatformDatabases } from "../platform.ts";
import type { TeamScope } from "./team-scope.ts";

const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns what belongs to a team. Throws a `UsageError` unless `uid` is the uid of a team. */
export async function findTeam(databases: PlatformDatabases, uid: string): Promise<TeamScope> {
  if (!UUID.test(uid)) throw new UsageError(`TEAM must be the uid of a team (got ${JSON.stringify(uid)}).`);
  const [factories, orchestrated] = await Promise.all([
    withClient(databases["factories"]!, (db) =>
      valuesOf(db, "SELECT uid AS value FROM factories WHERE team_uid = $1", [uid]),
    ),
    withClient(databases["orchestrator"]!, (db) =>
      valuesOf(db, "SELECT DISTINCT factory_uid AS value FROM definition_stages WHERE team_uid = $1", [uid]),
    ),
  ]);
  return withClient(databases["gateway"]!, async (db) => {
    const [name] = await valuesOf(db, "SELECT name AS value FROM teams WHERE uid = $1", [uid]);
    if (name === undefined) throw new UsageError(`There is no team ${uid}.`);
    return {
      team: uid,
      factories: [...new Set([...factories, ...orchestrated])],
      agents: await valuesOf(
        db,
        `SELECT uid AS value FROM agents WHERE team_uid = $1
         UNION SELECT uid FROM former_agents WHERE team_uid = $1`,
        [uid],
      ),
      members: await valuesOf(db, "SELECT user_uid AS value FROM memberships WHERE team_uid = $1", [uid]),
      users: await valuesOf(
        db,
        `SELECT u.uid AS value
           FROM users u
           JOIN memberships m ON m.user_uid = u.uid AND m.team_uid = $1
          WHERE NOT u.platform_admin
            AND NOT EXISTS (SELECT FROM memberships other WHERE other.user_uid = u.uid AND other.team_uid <> $1)`,
        [uid],
      ),
    };
  });
}
