import { WORKER_SHOWN_SECONDS } from "../domain/queue-settings.ts";
import type { Sql } from "@millwright/database";
import { claimsFactory, type RepositorySkill } from "../domain/skill-spec.ts";
import type { Owner } from "@millwright/caller";

/**
 * Skills found in a repository when it was last read for an owner. `failure` is empty if that read succeeded; otherwise
 * the skills are those of an earlier read.
 */
export type ReadRepository = {
  readonly repository: string;
  readonly skills: readonly RepositorySkill[];
  readonly failure: string;
  readonly readAt: Date;
};

/** Stores skills as they were found. */
export const skillStore = {
  /** Returns those of these repositories (`owner/repo`, in lower case) that were read before. */
  async read(sql: Sql, owner: Owner, repositories: readonly string[]): Promise<ReadRepository[]> {
    const { rows } = await sql.query<ReadRepository>(
      `SELECT repository, skills, failure, read_at AS "readAt" FROM repository_skills WHERE owner_type = $1 AND owner_uid = $2::uuid AND repository = ANY($3)`,
      [owner.type, owner.uid, repositories],
    );
    return rows;
  },

  async put(sql: Sql, owner: Owner, { repository, skills, failure, readAt }: ReadRepository): Promise<void> {
    await sql.query(
      `INSERT INTO repository_skills (owner_type, owner_uid, repository, skills, failure, read_at) VALUES ($1, $2::uuid, $3, $4::jsonb, $5, $6)
       ON CONFLICT (owner_type, owner_uid, repository) DO UPDATE SET skills = excluded.skills, failure = excluded.failure, read_at = excluded.read_at`,
      [owner.type, owner.uid, repository, JSON.stringify(skills), failure, readAt],
    );
  },

  /** Returns the skills that connected workers of these teams have reported, by worker host. */
  async ofWorkers(
    sql: Sql,
    teamUids: readonly string[],
  ): Promise<{ readonly workerHost: string; readonly skills: readonly RepositorySkill[] }[]> {
    const { rows } = await sql.query<{ workerHost: string; skills: RepositorySkill[] }>(
      `SELECT DISTINCT ON (worker_host COLLATE "C") worker_host AS "workerHost", skills FROM worker_sessions
        WHERE team_uid = ANY($1::uuid[]) AND last_seen_at > clock_timestamp() - $2 * interval '1 second' AND skills <> '[]'
        ORDER BY worker_host COLLATE "C", connected_at DESC`,
      [teamUids, WORKER_SHOWN_SECONDS],
    );
    return rows.map(({ workerHost, skills }) => ({
      workerHost,
      skills: skills.filter((skill) => !claimsFactory(skill)),
    }));
  },

  /**
   * Returns when one of these owners last created a run of each skill, by its complete spec. Skills without a run are
   * left out.
   */
  async lastRuns(sql: Sql, owners: readonly Owner[], specs: readonly string[]): Promise<Map<string, Date>> {
    if (specs.length === 0) return new Map();
    const { rows } = await sql.query<{ spec: string; at: Date }>(
      `SELECT k.spec, max(newest.created_at) AS at
         FROM unnest($1::text[]) AS k (spec)
         CROSS JOIN unnest($2::text[], $3::uuid[]) AS o (type, uid)
         CROSS JOIN LATERAL (SELECT r.created_at FROM runs r
                              WHERE r.owner_uid = o.uid AND r.owner_type = o.type AND r.skill_spec = k.spec
                              ORDER BY r.created_at DESC LIMIT 1) newest
        GROUP BY k.spec`,
      [specs, owners.map(({ type }) => type), owners.map(({ uid }) => uid)],
    );
    return new Map(rows.map(({ spec, at }) => [spec, at]));
  },
};
