import type { Database, Sql } from "@millwright/database";
import type { PullRequestFacts, PullRequestState } from "../domain/pull-request-fact.ts";
import { urlKey } from "../domain/url-key.ts";
import { isCurrent, storeActivities } from "./activity-store.ts";
import { lockFactories } from "./factory-lock.ts";
import { jsonColumns } from "./json-columns.ts";
import { projectPullRequests } from "./project-pull-requests.ts";

/** Pull requests as code hosts report them. */
export function pullRequestFactStore(database: Database) {
  return {
    /**
     * Stores facts of a pull request and projects it for every factory that produced it, in one transaction that `finish` takes part in. The
     * order in which facts are stored does not matter.
     */
    async record(teamUid: string, facts: PullRequestFacts, finish: (tx: Sql) => Promise<void>): Promise<void> {
      const key = urlKey(facts.pullRequest.url);
      let factories = await producersOf(database.sql, teamUid, key);
      for (;;) {
        const locked = factories;
        const missed = await database.transaction(async (tx) => {
          // Sent at once, executed in this order: a delivery costs three round trips instead of ten.
          const [, , producers] = await Promise.all([
            lockFactories(tx, locked),
            lockPullRequest(tx, teamUid, key),
            producersOf(tx, teamUid, key),
          ]);
          if (producers.some((uid) => !locked.includes(uid))) return producers;
          await Promise.all([
            storeFact(tx, teamUid, key, facts),
            storeActivities(tx, teamUid, key, facts.activities),
            setClosingOfGitlab(tx, teamUid, key),
            ...producers.map((factoryUid) => projectPullRequests(tx, factoryUid, [key])),
          ]);
          await finish(tx);
          return undefined;
        });
        if (!missed) return;
        factories = missed; // a run of a further factory produced it in the meantime
      }
    },

    /** Returns the state of a pull request, as it is known, and whether only deliveries report some of its activities. */
    async known(teamUid: string, key: string): Promise<KnownPullRequest> {
      const { rows } = await database.sql.query<{ state: PullRequestState; has_approximate_activities: boolean }>(
        `SELECT p.state,
                EXISTS (SELECT FROM pull_request_activities a
                         WHERE a.team_uid = p.team_uid AND a.url_key = p.url_key AND a.is_approximate
                           AND ${isCurrent("a", "p")}) AS has_approximate_activities
           FROM pull_requests p
          WHERE p.team_uid = $1 AND p.url_key = $2`,
        [teamUid, key],
      );
      const { state = "open", has_approximate_activities: hasApproximateActivities = false } = rows[0] ?? {};
      return { state, hasApproximateActivities };
    },
  };
}

export type KnownPullRequest = { readonly state: PullRequestState; readonly hasApproximateActivities: boolean };

/** Factories whose runs produced a pull request. */
async function producersOf(sql: Sql, teamUid: string, key: string): Promise<string[]> {
  const { rows } = await sql.query<{ factory_uid: string }>(
    "SELECT DISTINCT factory_uid FROM produced_pull_requests WHERE team_uid = $1 AND url_key = $2",
    [teamUid, key],
  );
  return rows.map((row) => row.factory_uid);
}

/**
 * Waits for transactions that add a producer of the pull request, and has later ones wait until this transaction ends; a trigger takes the same lock
 * for them. Like them, the caller has locked factories before.
 */
async function lockPullRequest(tx: Sql, teamUid: string, key: string): Promise<void> {
  await tx.query(
    "SELECT pg_advisory_xact_lock(hashtextextended('pull request ' || $1::uuid || ' ' || $2::text, 0))::text",
    [teamUid, key],
  );
}

/** Stores the fact. Of status and size the newest known one remains; a merge remains whatever else is reported. */
async function storeFact(tx: Sql, teamUid: string, key: string, facts: PullRequestFacts): Promise<void> {
  const fact = facts.pullRequest;
  await tx.query(STORE, [
    teamUid,
    key,
    JSON.stringify({
      url: fact.url,
      provider: fact.provider,
      repo_full_name: fact.repoFullName,
      pr_number: fact.prNumber,
      author_login: fact.authorLogin,
      opened_at: fact.openedAt,
      merged_at: fact.mergedAt,
      updated_at: fact.updatedAt,
      title: fact.status?.title,
      state: fact.status?.state ?? "open",
      closed_at: fact.status?.closedAt,
      state_at: fact.status && fact.updatedAt,
      additions: fact.size?.additions,
      deletions: fact.size?.deletions,
      changed_files: fact.size?.changedFiles,
      num_commits: fact.size?.numCommits,
      measured_at: fact.size && fact.updatedAt,
      history_read_to: facts.historyReadTo,
    }),
  ]);
}

/** Whether the fact to store has newer values; of two facts of the same time, those with the greater values, whichever was stored first. */
const isNewer = (time: string, ...values: readonly ((table: string) => string)[]): string => {
  const row = (table: string): string => [`${table}.${time}`, ...values.map((value) => value(table))].join(", ");
  return `excluded.${time} IS NOT NULL AND (p.${time} IS NULL OR (${row("excluded")}) > (${row("p")}))`;
};
const column =
  (name: string) =>
  (table: string): string =>
    `${table}.${name}`;
const pick = (condition: string, name: string): string =>
  `${name} = CASE WHEN ${condition} THEN excluded.${name} ELSE p.${name} END`;

const SIZE = ["additions", "deletions", "changed_files", "num_commits"];
const HAS_NEWER_SIZE = isNewer("measured_at", ...SIZE.map(column));
/** Code hosts report whole seconds: within one, later states of the usual course are the newer ones. */
const rank = (table: string): string => `array_position(ARRAY['draft', 'open', 'closed', 'merged'], ${table}.state)`;
const HAS_NEWER_STATE = isNewer("state_at", rank, (table) => `coalesce(${table}.closed_at, '-infinity')`);
const IS_MERGED = "p.merged_at IS NOT NULL OR excluded.merged_at IS NOT NULL";

const COLUMNS = jsonColumns({
  url: "text",
  provider: "text",
  repo_full_name: "text",
  pr_number: "integer",
  title: "text",
  author_login: "text",
  state: "text",
  opened_at: "timestamptz",
  merged_at: "timestamptz",
  closed_at: "timestamptz",
  updated_at: "timestamptz",
  additions: "integer",
  deletions: "integer",
  changed_files: "integer",
  num_commits: "integer",
  state_at: "timestamptz",
  measured_at: "timestamptz",
  history_read_to: "timestamptz",
});

const STORE = `
  INSERT INTO pull_requests AS p (team_uid, url_key, recorded_at, ${COLUMNS.list()})
  SELECT $1::uuid, $2::text, now(), ${COLUMNS.list()}
    FROM json_to_record($3::json) AS fact (${COLUMNS.definitions})
  ON CONFLICT (team_uid, url_key) DO UPDATE
  SET author_login = least(p.author_login, excluded.author_login),
      opened_at = least(p.opened_at, excluded.opened_at),
      merged_at = least(p.merged_at, excluded.merged_at),
      updated_at = greatest(p.updated_at, excluded.updated_at),
      ${pick(isNewer("updated_at", column("url")), "url")},
      ${pick(isNewer("updated_at", column("repo_full_name")), "repo_full_name")},
      ${pick(isNewer("state_at", column("title")), "title")},
      state = CASE WHEN ${IS_MERGED} THEN 'merged' WHEN ${HAS_NEWER_STATE} THEN excluded.state ELSE p.state END,
      closed_at = CASE WHEN ${IS_MERGED} THEN NULL WHEN ${HAS_NEWER_STATE} THEN excluded.closed_at ELSE p.closed_at END,
      state_at = greatest(p.state_at, excluded.state_at),
      ${SIZE.map((name) => pick(HAS_NEWER_SIZE, name)).join(",\n      ")},
      measured_at = greatest(p.measured_at, excluded.measured_at),
      recorded_at = excluded.recorded_at,
      history_read_to = greatest(p.history_read_to, excluded.history_read_to)`;

/** GitLab's payloads lack the time of the closing: it is that of the last closing that was observed. */
async function setClosingOfGitlab(tx: Sql, teamUid: string, key: string): Promise<void> {
  await tx.query(
    `UPDATE pull_requests p
        SET closed_at = coalesce((SELECT max(occurred_at)
                                    FROM pull_request_activities a
                                   WHERE a.team_uid = p.team_uid
                                     AND a.url_key = p.url_key
                                     AND a.activity_key LIKE 'close:%'
                                     AND ${isCurrent("a", "p")}), p.closed_at)
      WHERE p.team_uid = $1
        AND p.url_key = $2
        AND p.provider = 'GITLAB'
        AND p.state = 'closed'`,
    [teamUid, key],
  );
}
