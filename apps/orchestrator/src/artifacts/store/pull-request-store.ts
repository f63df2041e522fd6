import type { Sql } from "@millwright/database";
import { isUuid, type ArtifactUid, type RunUid } from "@millwright/ids";
import type { PullRequest } from "../../catalog/domain/pull-request.ts";
import type { PullRequestSize } from "../../catalog/domain/pull-request.ts";

const COLUMNS = `uid, run_uid, code_host_uid, kind, owner, repo, number, url, title, body, head_branch, base_branch, head_sha, base_sha, status,
  artifact_uid, created_at`;

export type PullRequestKey = Pick<PullRequest, "runUid" | "owner" | "repo" | "headBranch">;

/** Stores pull requests opened for runs. */
export const pullRequestStore = {
  async findByHead(sql: Sql, key: PullRequestKey): Promise<PullRequest | undefined> {
    const { rows } = await sql.query<Row>(
      `SELECT ${COLUMNS} FROM pull_requests WHERE run_uid = $1 AND owner = $2 AND repo = $3 AND head_branch = $4`,
      [key.runUid, key.owner, key.repo, key.headBranch],
    );
    return rows[0] && toPullRequest(rows[0]);
  },

  async find(sql: Sql, uid: string): Promise<PullRequest | undefined> {
    if (!isUuid(uid)) return undefined;
    const { rows } = await sql.query<Row>(`SELECT ${COLUMNS} FROM pull_requests WHERE uid = $1`, [uid]);
    return rows[0] && toPullRequest(rows[0]);
  },

  /** Returns the pull requests of all these runs, oldest first. */
  async listOfRuns(sql: Sql, runUids: readonly string[]): Promise<PullRequest[]> {
    const { rows } = await sql.query<Row>(
      `SELECT ${COLUMNS} FROM pull_requests WHERE run_uid = ANY($1::uuid[]) ORDER BY created_at, uid`,
      [runUids],
    );
    return rows.map(toPullRequest);
  },

  /** Returns the next number in a local repository; the row lock makes numbers unique and gapless. */
  async nextLocalNumber(tx: Sql, repository: Pick<PullRequest, "codeHostUid" | "owner" | "repo">): Promise<number> {
    const { rows } = await tx.query<{ last_number: number }>(
      `INSERT INTO local_pull_request_counters AS c (code_host_uid, owner, repo, last_number) VALUES ($1, $2, $3, 1)
       ON CONFLICT (code_host_uid, owner, repo) DO UPDATE SET last_number = c.last_number + 1 RETURNING last_number`,
      [repository.codeHostUid, repository.owner, repository.repo],
    );
    return rows[0]!.last_number;
  },

  async insert(tx: Sql, pull: Omit<PullRequest, "createdAt">, size?: PullRequestSize): Promise<void> {
    await tx.query(
      `INSERT INTO pull_requests (uid, run_uid, code_host_uid, kind, owner, repo, number, url, title, body, head_branch, base_branch, head_sha, base_sha, status, artifact_uid,
              additions, deletions, changed_files, num_commits)
       VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)`,
      [
        ...[
          pull.uid,
          pull.runUid,
          pull.codeHostUid,
          pull.kind,
          pull.owner,
          pull.repo,
          pull.number,
          pull.url,
          pull.title,
          pull.body,
        ],
        ...[pull.headBranch, pull.baseBranch, pull.headSha, pull.baseSha, pull.status, pull.artifactUid],
        ...sizeColumns(size),
      ],
    );
  },

  /** Records that the branch is at another commit, and the size of the pull request at that commit. */
  async moveHead(sql: Sql, uid: string, headSha: string, size?: PullRequestSize): Promise<void> {
    await sql.query(
      `UPDATE pull_requests
          SET head_sha = $2, additions = $3, deletions = $4, changed_files = $5, num_commits = $6
        WHERE uid = $1
          AND head_sha <> $2`,
      [uid, headSha, ...sizeColumns(size)],
    );
  },

  /** Returns the distinct URLs of pull requests in a run's whole tree, oldest first. */
  async urlsOfTree(sql: Sql, runUid: string): Promise<string[]> {
    const { rows } = await sql.query<{ url: string }>(
      `WITH root AS (SELECT root_run_uid AS uid FROM runs WHERE uid = $1),
       tree AS (SELECT uid FROM root UNION ALL SELECT r.uid FROM root JOIN runs r ON r.root_run_uid = root.uid AND r.parent_run_uid IS NOT NULL)
       SELECT p.url FROM tree JOIN pull_requests p ON p.run_uid = tree.uid GROUP BY p.url ORDER BY min(p.created_at), p.url`,
      [runUid],
    );
    return rows.map(({ url }) => url);
  },
};

export type PullRequestStore = typeof pullRequestStore;

const sizeColumns = (size: PullRequestSize | undefined): unknown[] =>
  size ? [size.additions, size.deletions, size.changedFiles, size.numCommits] : [null, null, null, null];

type Row = Pick<PullRequest, "uid" | "kind" | "owner" | "repo" | "number" | "url" | "title" | "body" | "status"> & {
  run_uid: RunUid;
  code_host_uid: string;
  head_branch: string;
  base_branch: string;
  head_sha: string;
  base_sha: string;
  artifact_uid: ArtifactUid;
  created_at: Date;
};

const toPullRequest = ({
  run_uid,
  code_host_uid,
  head_branch,
  base_branch,
  head_sha,
  base_sha,
  artifact_uid,
  created_at,
  ...row
}: Row): PullRequest => ({
  ...row,
  runUid: run_uid,
  codeHostUid: code_host_uid,
  headBranch: head_branch,
  baseBranch: base_branch,
  headSha: head_sha,
  baseSha: base_sha,
  artifactUid: artifact_uid,
  createdAt: created_at,
});
