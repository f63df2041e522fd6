import type { Database, Sql } from "@millwright/database";
import type { PullRequestState, ReportedFacts } from "../domain/pull-request-fact.ts";
import { urlKey } from "../domain/url-key.ts";
import { isCurrent, storeActivities } from "./activity-store.ts";
import { lockFactories } from "./factory-lock.ts";
import { jsonColumns, statementsOf } from "./json-columns.ts";
import { projectPullRequests } from "./project-pull-requests.ts";

/** Pull requests as code hosts report them. */
export function pullRequestFactStore(database: Database) {
  return {
    /**
     * Stores facts of pull requests and projects these for every factory that produced them, in one transaction that
     * `finish` takes part in. The order in which facts are stored does not matter.
     */
    async record(reported: readonly ReportedFacts[], finish: (tx: Sql) => Promise<void>): Promise<void> {
      const keys = pullRequestKeys(reported);
      let factories = factoriesOf(await producersOf(database.sql, keys));
      for (;;) {
        const locked = factories;
        const missed = await database.transaction(async (tx) => {
          // Sent at once, executed in this order: a batch costs three round trips instead of ten.
          const [, , , producers] = await Promise.all([
            lockTeams(tx, keys),
            lockFactories(tx, locked),
            lockPullRequests(tx, keys),
            producersOf(tx, keys),
          ]);
          const found = factoriesOf(producers);
          if (found.some((uid) => !locked.includes(uid))) return found;
          await Promise.all([
            storeFacts(tx, reported),
            storeActivities(
              tx,
              reported.flatMap(({ teamUid, facts }) =>
                facts.activities.map((activity) => ({
                  teamUid,
                  urlKey: urlKey(facts.pullRequest.url),
                  activity,
                })),
              ),
            ),
            setClosingOfGitlab(tx, keys),
            ...found.map((factoryUid) =>
              projectPullRequests(
                tx,
                factoryUid,
                producers.filter((each) => each.factory_uid === factoryUid).map((each) => each.url_key),
              ),
            ),
          ]);
          await finish(tx);
          return undefined;
        });
        if (!missed) return;
        factories = missed; // a run of another factory produced one of them concurrently
      }
    },

    /**
     * Returns the state of a pull request, as it is known, and whether only deliveries report some of its activities.
     */
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

export type PullRequestFactStore = ReturnType<typeof pullRequestFactStore>;

export type KnownPullRequest = { readonly state: PullRequestState; readonly hasApproximateActivities: boolean };

/** Pull requests of teams, as two arrays of the same length. */
export type PullRequestKeys = { readonly teamUids: readonly string[]; readonly urlKeys: readonly string[] };

/** Returns the pull requests that facts are about, each once. */
export function pullRequestKeys(reported: readonly ReportedFacts[]): PullRequestKeys {
  const teams = new Map(
    reported.map(({ teamUid, facts }) => {
      const key = urlKey(facts.pullRequest.url);
      return [`${teamUid} ${key}`, { teamUid, key }];
    }),
  );
  return {
    teamUids: [...teams.values()].map((each) => each.teamUid),
    urlKeys: [...teams.values()].map((each) => each.key),
  };
}

/** SQL for the keys whose arrays are $1 and $2. */
const KEYS = "unnest($1::uuid[], $2::text[]) AS key (team_uid, url_key)";

type Producer = { readonly factory_uid: string; readonly url_key: string };

/** Returns the factories whose runs produced the pull requests. */
async function producersOf(sql: Sql, { teamUids, urlKeys }: PullRequestKeys): Promise<Producer[]> {
  const { rows } = await sql.query<Producer>(
    `SELECT DISTINCT p.factory_uid, p.url_key
       FROM ${KEYS}
       JOIN produced_pull_requests p USING (team_uid, url_key)`,
    [teamUids, urlKeys],
  );
  return rows;
}

const factoriesOf = (producers: readonly Producer[]): string[] => [
  ...new Set(producers.map(({ factory_uid: uid }) => uid)),
];

/**
 * Serializes the transactions that store facts of a team: facts of several pull requests change sums of several days,
 * which two transactions would lock in different orders.
 */
async function lockTeams(tx: Sql, { teamUids }: PullRequestKeys): Promise<void> {
  await tx.query(
    `SELECT pg_advisory_xact_lock(hashtextextended('facts of team ' || uid, 0))::text
       FROM (SELECT DISTINCT uid FROM unnest($1::uuid[]) AS uid ORDER BY 1) teams`,
    [teamUids],
  );
}

/**
 * Waits for transactions that add a producer of one of the pull requests, and blocks later ones until this transaction
 * ends; a trigger acquires the same lock for them. The caller must have locked the factories, as they do.
 */
async function lockPullRequests(tx: Sql, { teamUids, urlKeys }: PullRequestKeys): Promise<void> {
  await tx.query(
    `SELECT pg_advisory_xact_lock(hashtextextended('pull request ' || team_uid || ' ' || url_key, 0))::text
       FROM (SELECT team_uid, url_key FROM ${KEYS} ORDER BY 1, 2) keys`,
    [teamUids, urlKeys],
  );
}

/** Stores the facts. Of status and size the newest known one remains; a merge remains whatever else is reported. */
async function storeFacts(tx: Sql, reported: readonly ReportedFacts[]): Promise<void> {
  const rows = reported.map(toRow);
  await Promise.all(
    statementsOf(rows, (row) => `${row.team_uid} ${row.url_key}`).map((statement) =>
      tx.query(STORE, [JSON.stringify(statement)]),
    ),
  );
}

const toRow = ({ teamUid, facts: { pullRequest: fact, historyReadTo } }: ReportedFacts) => ({
  team_uid: teamUid,
  url_key: urlKey(fact.url),
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
  history_read_to: historyReadTo,
});

/**
 * Whether the fact to store has newer values; of two facts of the same time, those with the greater values, whichever
 * was stored first.
 */
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
  team_uid: "uuid",
  url_key: "text",
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
  INSERT INTO pull_requests AS p (recorded_at, ${COLUMNS.list()})
  SELECT now(), ${COLUMNS.list()}
    FROM json_to_recordset($1::json) AS fact (${COLUMNS.definitions})
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
async function setClosingOfGitlab(tx: Sql, { teamUids, urlKeys }: PullRequestKeys): Promise<void> {
  await tx.query(
    `UPDATE pull_requests p
        SET closed_at = closing.occurred_at
       FROM ${KEYS}
      CROSS JOIN LATERAL (SELECT max(a.occurred_at) AS occurred_at
                            FROM pull_request_activities a
                            JOIN pull_requests pr USING (team_uid, url_key)
                           WHERE a.team_uid = key.team_uid
                             AND a.url_key = key.url_key
                             AND a.activity_key LIKE 'close:%'
                             AND ${isCurrent("a", "pr")}) closing
      WHERE p.team_uid = key.team_uid
        AND p.url_key = key.url_key
        AND p.provider = 'GITLAB'
        AND p.state = 'closed'
        AND closing.occurred_at IS NOT NULL`,
    [teamUids, urlKeys],
  );
}
