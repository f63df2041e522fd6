import type { Database, Sql } from "@millwright/database";
import { isUuid, newUid, runnerUidOf, type FactoryUid, type TeamUid } from "@millwright/ids";
import type { RepositoryRef } from "../domain/agent-config.ts";
import {
  isRunner,
  type DefinitionPart,
  type IdentifiedRunner,
  type Runner,
  type Skill,
} from "../domain/definition-part.ts";

export type StoredRunner = IdentifiedRunner & { readonly factoryUid: FactoryUid };
export type StoredPart = Omit<DefinitionPart, "runners"> & {
  readonly version: number;
  readonly runners: readonly StoredRunner[];
};

export type DefinitionStore = {
  /** Stores a version without activating it; replaces what was staged for the version before. */
  stage(stage: { factoryUid: FactoryUid; teamUid: TeamUid; version: number; part: DefinitionPart }): Promise<void>;
  /** Deletes a version unless it is the active one. */
  drop(factoryUid: FactoryUid, version: number): Promise<void>;
  /** Returns this version or, if it is unknown (or 0), the active one. Returns undefined if there is neither. */
  find(factoryUid: FactoryUid, version: number): Promise<StoredPart | undefined>;
  /** Returns the active definitions of the open factories of these teams, the newest factory last. */
  inForce(teamUids: readonly string[]): Promise<
    {
      readonly factoryUid: FactoryUid;
      readonly teamUid: TeamUid;
      readonly repositories: readonly RepositoryRef[];
      readonly skills: readonly Skill[];
    }[]
  >;
  /** Returns the runners of the active definitions of the team's factories, by factory and name. */
  runnersOf(teamUid: string): Promise<StoredRunner[]>;
  /**
   * Returns the runner with this uid in the active definition of one of the team's factories. A malformed uid finds
   * nothing.
   */
  findRunner(teamUid: TeamUid, uid: string): Promise<StoredRunner | undefined>;
};

/** Stores this service's parts of factory definitions. */
export function definitionStore(database: Database): DefinitionStore {
  const { sql } = database;
  const runnersOf = async (teamUid: string): Promise<StoredRunner[]> => {
    const { rows } = await sql.query<RunnerRow>(
      `SELECT ${RUNNER_COLUMNS} FROM runners JOIN definition_stages s USING (factory_uid, version)
         JOIN active_definitions USING (factory_uid, version)
        WHERE s.team_uid = $1 ORDER BY factory_uid, name`,
      [teamUid],
    );
    return rows.map(toRunner);
  };
  return {
    runnersOf,
    stage: ({ factoryUid, teamUid, version, part }) =>
      database.transaction(async (tx) => {
        const uids = await runnerUids(tx, factoryUid);
        await tx.query("DELETE FROM definition_stages WHERE factory_uid = $1 AND version = $2", [factoryUid, version]);
        await tx.query(
          "INSERT INTO definition_stages (factory_uid, version, team_uid, repositories) VALUES ($1, $2, $3, $4::jsonb)",
          [...[factoryUid, version, teamUid, JSON.stringify(part.repositories)]],
        );
        await insertRunners(tx, factoryUid, version, part.runners, uids);
        await insertSkills(tx, factoryUid, version, part.skills);
      }),
    async drop(factoryUid, version) {
      await sql.query(
        `DELETE FROM definition_stages s WHERE s.factory_uid = $1 AND s.version = $2
            AND NOT EXISTS (SELECT 1 FROM active_definitions a WHERE a.factory_uid = $1 AND a.version = $2)`,
        [factoryUid, version],
      );
    },
    async find(factoryUid, version) {
      const { rows } = await sql.query<{ version: number; repositories: RepositoryRef[] }>(
        `SELECT s.version, s.repositories FROM definition_stages s LEFT JOIN active_definitions a USING (factory_uid)
          WHERE s.factory_uid = $1 AND s.version IN ($2, a.version) ORDER BY (s.version = $2) DESC LIMIT 1`,
        [factoryUid, version],
      );
      const [stage] = rows;
      if (!stage) return undefined;
      const key = [factoryUid, stage.version];
      const runners = await sql.query<RunnerRow>(
        `SELECT ${RUNNER_COLUMNS} FROM runners WHERE factory_uid = $1 AND version = $2 ORDER BY name`,
        key,
      );
      const skills = await sql.query<Skill>(
        "SELECT path, name, agent, description, body, error FROM skills WHERE factory_uid = $1 AND version = $2 ORDER BY path",
        key,
      );
      return {
        version: stage.version,
        repositories: stage.repositories,
        runners: runners.rows.map(toRunner),
        skills: skills.rows,
      };
    },
    async inForce(teamUids) {
      const { rows } = await sql.query<{
        factoryUid: FactoryUid;
        teamUid: TeamUid;
        repositories: RepositoryRef[];
        skills: Skill[];
      }>(
        `SELECT s.factory_uid AS "factoryUid", s.team_uid AS "teamUid", s.repositories,
                coalesce((SELECT jsonb_agg(jsonb_build_object('path', k.path, 'name', k.name, 'agent', k.agent, 'description', k.description, 'body', k.body, 'error', k.error) ORDER BY k.path)
                            FROM skills k WHERE k.factory_uid = s.factory_uid AND k.version = s.version), '[]') AS skills
           FROM definition_stages s JOIN active_definitions a USING (factory_uid, version)
          WHERE s.team_uid = ANY($1::uuid[]) AND NOT EXISTS (SELECT 1 FROM closed_factories c WHERE c.factory_uid = s.factory_uid)
          ORDER BY s.factory_uid`,
        [teamUids],
      );
      return rows;
    },
    async findRunner(teamUid, uid) {
      if (!isUuid(uid)) return undefined;
      return (await runnersOf(teamUid)).find((runner) => isRunner(runner, uid));
    },
  };
}

/**
 * Activates a version of a factory, in the caller's transaction. Changes nothing if the active version is the same or
 * newer. Deletes versions before the previously active one, because no dispatch refers to them any more. Returns the
 * active version, or undefined if this version was never staged here and no newer one is active.
 */
export async function activateVersion(tx: Sql, factoryUid: string, version: number): Promise<number | undefined> {
  const before = await tx.query<{ version: number }>(
    "SELECT version FROM active_definitions WHERE factory_uid = $1 FOR UPDATE",
    [factoryUid],
  );
  const current = before.rows[0]?.version;
  if (current !== undefined && current >= version) return current;
  const staged = await tx.query("SELECT 1 FROM definition_stages WHERE factory_uid = $1 AND version = $2", [
    factoryUid,
    version,
  ]);
  if (staged.rowCount === 0) return undefined;
  const { rows } = await tx.query<{ version: number }>(
    `INSERT INTO active_definitions AS a (factory_uid, version) VALUES ($1, $2)
     ON CONFLICT (factory_uid) DO UPDATE SET version = greatest(a.version, excluded.version), activated_at = now() RETURNING version`,
    [factoryUid, version],
  );
  if (current !== undefined)
    await tx.query("DELETE FROM definition_stages WHERE factory_uid = $1 AND version < $2", [factoryUid, current]);
  return rows[0]?.version;
}

const RUNNER_COLUMNS = "factory_uid, name, uid, description, setup_commands, docker_image, os, arch, vcpus, memory_gb";

type RunnerRow = Pick<StoredRunner, "name" | "uid" | "description" | "os" | "arch"> & {
  factory_uid: FactoryUid;
  setup_commands: string[];
  docker_image: string;
  vcpus: number | null;
  memory_gb: number | null;
};

const toRunner = (row: RunnerRow): StoredRunner => ({
  uid: runnerUidOf(row.factory_uid, row.name),
  formerUid: row.uid,
  factoryUid: row.factory_uid,
  name: row.name,
  description: row.description,
  setupCommands: row.setup_commands,
  dockerImage: row.docker_image,
  os: row.os,
  arch: row.arch,
  vcpus: row.vcpus ?? undefined,
  memoryGb: row.memory_gb ?? undefined,
});

/** Returns the uids that runner names of the factory already have. */
async function runnerUids(tx: Sql, factoryUid: string): Promise<ReadonlyMap<string, string>> {
  const text = "SELECT DISTINCT ON (name) name, uid FROM runners WHERE factory_uid = $1 ORDER BY name, version DESC";
  const { rows } = await tx.query<{ name: string; uid: string }>(text, [factoryUid]);
  return new Map(rows.map(({ name, uid }) => [name, uid]));
}

async function insertRunners(
  tx: Sql,
  factoryUid: string,
  version: number,
  runners: readonly Runner[],
  uids: ReadonlyMap<string, string>,
): Promise<void> {
  for (const runner of runners) {
    await tx.query(
      `INSERT INTO runners (factory_uid, version, name, uid, description, setup_commands, docker_image, os, arch, vcpus, memory_gb)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
      [
        ...[
          factoryUid,
          version,
          runner.name,
          uids.get(runner.name) ?? newUid(),
          runner.description,
          runner.setupCommands,
        ],
        ...[runner.dockerImage, runner.os, runner.arch, runner.vcpus ?? null, runner.memoryGb ?? null],
      ],
    );
  }
}

async function insertSkills(tx: Sql, factoryUid: string, version: number, skills: readonly Skill[]): Promise<void> {
  for (const skill of skills) {
    await tx.query(
      "INSERT INTO skills (factory_uid, version, path, name, agent, description, body, error) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
      [factoryUid, version, skill.path, skill.name, skill.agent, skill.description, skill.body, skill.error],
    );
  }
}
