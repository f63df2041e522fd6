import type { Sql } from "@millwright/database";
import type { PullRequestKeys } from "./pull-request-fact-store.ts";

/** A claimed repository. `leaseEndsAt` names the claim: it is lost as soon as it has changed. */
export type RepositoryClaim = {
  readonly teamUid: string;
  readonly provider: "GITHUB" | "GITLAB";
  readonly repoKey: string;
  readonly repoFullName: string;
  readonly readTo: Date;
  readonly etag: string;
  /** The connection that served the last read; undefined: none does. */
  readonly codeHostUid: string | undefined;
  readonly failures: number;
  readonly leaseEndsAt: Date;
};

/** A claimed pull request. */
export type PullRequestClaim = {
  readonly teamUid: string;
  readonly urlKey: string;
  readonly url: string;
  readonly provider: "GITHUB" | "GITLAB" | "LOCAL";
  readonly repoKey: string;
  readonly repoFullName: string;
  readonly prNumber: number;
  readonly etags: Readonly<Record<string, string>>;
  /** Undefined: never read. */
  readonly changedAt: Date | undefined;
  /** The connection that serves its repository; undefined: a local one. */
  readonly codeHostUid: string | undefined;
  readonly failures: number;
  readonly leaseEndsAt: Date;
};

/** SQL: the connection is not paused. */
const isNotPaused = (codeHostUid: string): string =>
  `NOT EXISTS (SELECT FROM code_host_pauses c WHERE c.code_host_uid = ${codeHostUid} AND c.paused_until > $1)`;

/**
 * Claims repositories whose list of changes is due, longest due first, for `leaseMs`: until then no other replica reads
 * them.
 */
export async function claimRepositories(
  sql: Sql,
  now: Date,
  limit: number,
  leaseMs: number,
): Promise<RepositoryClaim[]> {
  const leaseEndsAt = new Date(now.getTime() + leaseMs);
  const { rows } = await sql.query<RepositoryRow>(
    `UPDATE polled_repositories p
        SET poll_at = $2
       FROM (SELECT team_uid, provider, repo_key
               FROM polled_repositories r
              WHERE poll_at <= $1
                AND ${isNotPaused("r.code_host_uid")}
              ORDER BY poll_at
              LIMIT $3
                FOR UPDATE SKIP LOCKED) due
      WHERE (p.team_uid, p.provider, p.repo_key) = (due.team_uid, due.provider, due.repo_key)
     RETURNING p.*`,
    [now, leaseEndsAt, limit],
  );
  return rows.map((row) => ({
    teamUid: row.team_uid,
    provider: row.provider,
    repoKey: row.repo_key,
    repoFullName: row.repo_full_name,
    readTo: row.read_to,
    etag: row.etag,
    codeHostUid: row.code_host_uid ?? undefined,
    failures: row.failures,
    leaseEndsAt,
  }));
}

type RepositoryRow = {
  team_uid: string;
  provider: "GITHUB" | "GITLAB";
  repo_key: string;
  repo_full_name: string;
  read_to: Date;
  etag: string;
  code_host_uid: string | null;
  failures: number;
};

/** Stores how far a list of changes was read. A lost claim stores nothing. */
export async function saveRepositoryProgress(
  sql: Sql,
  claim: RepositoryClaim,
  { readTo, etag }: { readonly readTo: Date; readonly etag: string },
): Promise<void> {
  await sql.query(
    `UPDATE polled_repositories SET read_to = $5, etag = $6
      WHERE team_uid = $1 AND provider = $2 AND repo_key = $3 AND poll_at = $4`,
    [...keyOf(claim), readTo, etag],
  );
}

/** Ends a successful read of a repository. Makes its pull requests due that have waited for a connection. */
export async function finishRepository(
  sql: Sql,
  claim: RepositoryClaim,
  { codeHostUid, pollAt, now }: { readonly codeHostUid: string; readonly pollAt: Date; readonly now: Date },
): Promise<void> {
  await sql.query(
    `WITH finished AS (
       UPDATE polled_repositories SET code_host_uid = $5, poll_at = $6, failures = 0
        WHERE team_uid = $1 AND provider = $2 AND repo_key = $3 AND poll_at = $4)
     UPDATE polled_pull_requests SET poll_at = $7, failures = 0
      WHERE team_uid = $1 AND provider = $2 AND repo_key = $3 AND poll_at IS NULL AND NOT is_final`,
    [...keyOf(claim), codeHostUid, pollAt, now],
  );
}

/** Plans the next try of a repository. `isConnected`: false if no connection serves it. */
export async function retryRepository(
  sql: Sql,
  claim: RepositoryClaim,
  pollAt: Date,
  isConnected: boolean,
): Promise<void> {
  await sql.query(
    `UPDATE polled_repositories
        SET poll_at = $5, failures = failures + 1, code_host_uid = CASE WHEN $6 THEN code_host_uid END
      WHERE team_uid = $1 AND provider = $2 AND repo_key = $3 AND poll_at = $4`,
    [...keyOf(claim), pollAt, isConnected],
  );
}

const keyOf = ({ teamUid, provider, repoKey, leaseEndsAt }: RepositoryClaim): unknown[] => [
  teamUid,
  provider,
  repoKey,
  leaseEndsAt,
];

/** Makes produced pull requests due if their repository's list reports a change since they were read. */
export async function planChanged(
  sql: Sql,
  teamUid: string,
  changes: readonly { readonly urlKey: string; readonly changedAt: Date }[],
  now: Date,
): Promise<void> {
  if (changes.length === 0) return;
  await sql.query(
    `UPDATE polled_pull_requests p
        SET poll_at = least(p.poll_at, $4), is_final = false
       FROM (SELECT d.url_key
               FROM unnest($2::text[], $3::timestamptz[]) AS change (url_key, changed_at)
               JOIN polled_pull_requests d ON d.team_uid = $1 AND d.url_key = change.url_key
              WHERE d.changed_at IS NULL OR d.changed_at < change.changed_at
              ORDER BY d.url_key -- in one order, so that transactions do not deadlock
                FOR NO KEY UPDATE OF d) changed
      WHERE p.team_uid = $1
        AND p.url_key = changed.url_key`,
    [teamUid, changes.map(({ urlKey }) => urlKey), changes.map(({ changedAt }) => changedAt), now],
  );
}

/** Plans the next read of pull requests no later than `pollAt`, because deliveries report a change. */
export async function planAfterDelivery(tx: Sql, { teamUids, urlKeys }: PullRequestKeys, pollAt: Date): Promise<void> {
  await tx.query(
    `UPDATE polled_pull_requests p
        SET poll_at = $3, is_final = false
       FROM (SELECT team_uid, url_key
               FROM unnest($1::uuid[], $2::text[]) AS key (team_uid, url_key)
               JOIN polled_pull_requests d USING (team_uid, url_key)
              WHERE d.poll_at > $3 OR d.is_final
              ORDER BY team_uid, url_key -- in one order, so that transactions do not deadlock
                FOR NO KEY UPDATE OF d) changed
      WHERE (p.team_uid, p.url_key) = (changed.team_uid, changed.url_key)`,
    [teamUids, urlKeys, pollAt],
  );
}

/** Claims pull requests that are due, longest due first, for `leaseMs`. Those of paused connections are left out. */
export async function claimPullRequests(
  sql: Sql,
  now: Date,
  limit: number,
  leaseMs: number,
): Promise<PullRequestClaim[]> {
  const leaseEndsAt = new Date(now.getTime() + leaseMs);
  const { rows } = await sql.query<PullRequestRow>(
    `UPDATE polled_pull_requests p
        SET poll_at = $2
       FROM (SELECT d.team_uid, d.url_key, r.code_host_uid
               FROM polled_pull_requests d
               LEFT JOIN polled_repositories r USING (team_uid, provider, repo_key)
              WHERE d.poll_at <= $1
                AND ${isNotPaused("r.code_host_uid")}
              ORDER BY d.poll_at
              LIMIT $3
                FOR UPDATE OF d SKIP LOCKED) due
      WHERE (p.team_uid, p.url_key) = (due.team_uid, due.url_key)
     RETURNING p.*, due.code_host_uid`,
    [now, leaseEndsAt, limit],
  );
  return rows.map((row) => ({
    teamUid: row.team_uid,
    urlKey: row.url_key,
    url: row.url,
    provider: row.provider,
    repoKey: row.repo_key,
    repoFullName: row.repo_full_name,
    prNumber: row.pr_number,
    etags: row.etags,
    changedAt: row.changed_at ?? undefined,
    codeHostUid: row.code_host_uid ?? undefined,
    failures: row.failures,
    leaseEndsAt,
  }));
}

type PullRequestRow = {
  team_uid: string;
  url_key: string;
  url: string;
  provider: "GITHUB" | "GITLAB" | "LOCAL";
  repo_key: string;
  repo_full_name: string;
  pr_number: number;
  etags: Record<string, string>;
  changed_at: Date | null;
  code_host_uid: string | null;
  failures: number;
};

/** Ends a successful read of a pull request. If the claim was lost, changes nothing: the pull request is due again. */
export async function finishPullRequest(
  sql: Sql,
  claim: PullRequestClaim,
  plan: {
    readonly etags: Readonly<Record<string, string>>;
    readonly changedAt: Date | undefined;
    /** Undefined: it is not read again. */
    readonly pollAt: Date | undefined;
  },
): Promise<void> {
  await sql.query(
    `UPDATE polled_pull_requests
        SET etags = $4, changed_at = $5, poll_at = $6, is_final = $6::timestamptz IS NULL, failures = 0
      WHERE team_uid = $1 AND url_key = $2 AND poll_at = $3`,
    [claim.teamUid, claim.urlKey, claim.leaseEndsAt, JSON.stringify(plan.etags), plan.changedAt, plan.pollAt],
  );
}

/** Plans the next try of a pull request; undefined: when its repository is connected again. */
export async function retryPullRequest(sql: Sql, claim: PullRequestClaim, pollAt: Date | undefined): Promise<void> {
  await sql.query(
    "UPDATE polled_pull_requests SET poll_at = $4, failures = failures + 1 WHERE team_uid = $1 AND url_key = $2 AND poll_at = $3",
    [claim.teamUid, claim.urlKey, claim.leaseEndsAt, pollAt],
  );
}

/** Pauses all reads of a connection, by every replica, until a time. */
export async function pauseCodeHost(sql: Sql, codeHostUid: string, until: Date): Promise<void> {
  await sql.query(
    `INSERT INTO code_host_pauses AS c VALUES ($1, $2)
     ON CONFLICT (code_host_uid) DO UPDATE SET paused_until = greatest(c.paused_until, excluded.paused_until)`,
    [codeHostUid, until],
  );
}

/** Returns until when a connection is paused; undefined: it is not. */
export async function pausedUntil(sql: Sql, codeHostUid: string, now: Date): Promise<Date | undefined> {
  const { rows } = await sql.query<{ paused_until: Date }>(
    "SELECT paused_until FROM code_host_pauses WHERE code_host_uid = $1 AND paused_until > $2",
    [codeHostUid, now],
  );
  return rows[0]?.paused_until;
}

/** Returns how many repositories and pull requests are due, and how many connections are paused. */
export async function countPolls(
  sql: Sql,
  now: Date,
): Promise<{ readonly repositories: number; readonly pullRequests: number; readonly paused: number }> {
  const { rows } = await sql.query<{ repositories: number; pull_requests: number; paused: number }>(
    `SELECT (SELECT count(*)::integer FROM polled_repositories WHERE poll_at <= $1) AS repositories,
            (SELECT count(*)::integer FROM polled_pull_requests WHERE poll_at <= $1) AS pull_requests,
            (SELECT count(*)::integer FROM code_host_pauses WHERE paused_until > $1) AS paused`,
    [now],
  );
  const { repositories = 0, pull_requests: pullRequests = 0, paused = 0 } = rows[0] ?? {};
  return { repositories, pullRequests, paused };
}
