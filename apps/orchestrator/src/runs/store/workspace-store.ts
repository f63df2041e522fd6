import type { Sql } from "@millwright/database";
import { isUuid } from "@millwright/ids";
import type { LeftWorkspace } from "../domain/borrowed-workspace.ts";
import type { PinnedRepository } from "../domain/pinned-repository.ts";
import type { FrozenRepository } from "../domain/pinned-repository.ts";
import type { Owner, RunState } from "../domain/run.ts";

/**
 * Selects the newest ended execution of a run `r` that left its workspace: a stored snapshot, or unchanged clones. For
 * use in a LATERAL subquery.
 */
export const LEFT_WORKSPACE = `
  SELECT x.id AS execution_id, s.snapshot_key FROM executions x LEFT JOIN snapshots s ON s.snapshot_key = coalesce(x.snapshot_key, x.checkpoint_key)
   WHERE x.run_uid = r.uid AND x.state = 'ENDED' AND (s.snapshot_key IS NOT NULL OR x.workspace_unchanged) ORDER BY x.id DESC LIMIT 1`;

type Row = {
  owner_type: Owner["type"];
  owner_uid: string;
  state: RunState;
  repositories: FrozenRepository[];
  execution_id: number;
  snapshot_key: string | null;
};

/**
 * Returns the workspace that a run left, with its repositories at the commits that were cloned. Returns undefined if
 * the run or its workspace is absent.
 */
export async function findLeftWorkspace(sql: Sql, runUid: string): Promise<LeftWorkspace | undefined> {
  if (!isUuid(runUid)) return undefined;
  const { rows } = await sql.query<Row>(
    `SELECT r.owner_type, r.owner_uid, r.state, r.frozen -> 'repositories' AS repositories, x.execution_id, x.snapshot_key
       FROM runs r CROSS JOIN LATERAL (${LEFT_WORKSPACE}) x WHERE r.uid = $1`,
    [runUid],
  );
  const row = rows[0];
  if (!row) return undefined;
  const commits =
    row.repositories.length > 0 ? await clonedCommits(sql, runUid, row.execution_id) : new Map<string, string>();
  const repositories = row.repositories.map((repository) => {
    const commit = commits.get(keyOf(repository)) ?? repository.commit;
    return { ...repository, ...(commit ? { commit } : {}) };
  });
  return {
    ...{
      runUid: runUid.toLowerCase(),
      owner: { type: row.owner_type, uid: row.owner_uid },
      state: row.state,
      repositories,
    },
    snapshotKey: row.snapshot_key ?? undefined,
  };
}

/** Returns the repositories of a run at the commits of its first clones, or undefined if there is no such run. */
export async function findStartingCommits(sql: Sql, runUid: string): Promise<PinnedRepository[] | undefined> {
  if (!isUuid(runUid)) return undefined;
  const { rows } = await sql.query<{ owner: string | null; repo: string; commit: string }>(
    `SELECT DISTINCT ON (lower(e.payload ->> 'owner'), lower(e.payload ->> 'name'))
            e.payload ->> 'owner' AS owner, e.payload ->> 'name' AS repo, e.payload ->> 'base_sha' AS commit
       FROM runs r LEFT JOIN stream.run_events e ON e.run_uid = r.uid AND e.kind = 'repository_cloned'
      WHERE r.uid = $1 ORDER BY lower(e.payload ->> 'owner'), lower(e.payload ->> 'name'), e.seq`,
    [runUid],
  );
  if (rows.length === 0) return undefined;
  return rows.flatMap(({ owner, ...rest }) => (owner === null ? [] : [{ owner, ...rest }]));
}

/**
 * Returns the commits at which the repositories of a run were last cloned, up to an execution. Its snapshots are
 * differences to these commits.
 */
async function clonedCommits(sql: Sql, runUid: string, executionId: number): Promise<Map<string, string>> {
  const { rows } = await sql.query<{ owner: string; repo: string; commit: string }>(
    `SELECT payload ->> 'owner' AS owner, payload ->> 'name' AS repo, payload ->> 'base_sha' AS commit FROM stream.run_events
      WHERE run_uid = $1 AND kind = 'repository_cloned' AND execution_id <= $2 ORDER BY seq`,
    [runUid, executionId],
  );
  return new Map(rows.map(({ commit, ...repository }) => [keyOf(repository), commit]));
}

const keyOf = ({ owner, repo }: { readonly owner: string; readonly repo: string }): string =>
  `${owner}/${repo}`.toLowerCase();
