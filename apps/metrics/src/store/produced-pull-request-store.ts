import type { Sql } from "@millwright/database";
import type { ProducedPullRequest, RunSnapshot } from "../domain/run-snapshot.ts";
import { jsonColumns } from "./json-columns.ts";

const COLUMNS = jsonColumns({
  team_uid: "uuid",
  factory_uid: "uuid",
  root_run_uid: "uuid",
  url: "text",
  provider: "text",
  repo_full_name: "text",
  pr_number: "integer",
  title: "text",
  created_at: "timestamptz",
  run_created_at: "timestamptz",
  additions: "integer",
  deletions: "integer",
  changed_files: "integer",
  num_commits: "integer",
});

/** Stores the pull requests that runs have produced. Unchanged ones are not written. */
export async function storeProducedPullRequests(tx: Sql, runs: readonly RunSnapshot[]): Promise<void> {
  const rows = runs.flatMap((run) => distinct(run.pullRequests).map((pullRequest) => toRow(run, pullRequest)));
  if (rows.length === 0) return;
  await tx.query(
    `INSERT INTO produced_pull_requests (run_uid, url_key, ${COLUMNS.list()})
     SELECT p.run_uid, p.url_key, ${COLUMNS.list("p")}
       FROM json_to_recordset($1::json) AS p (run_uid uuid, url_key text, ${COLUMNS.definitions})
       LEFT JOIN produced_pull_requests stored ON stored.run_uid = p.run_uid AND stored.url_key = p.url_key
      WHERE stored.run_uid IS NULL OR (${COLUMNS.list("p")}) IS DISTINCT FROM (${COLUMNS.list("stored")})
      ORDER BY p.team_uid, p.url_key
     ON CONFLICT (run_uid, url_key) DO UPDATE SET ${COLUMNS.excluded}`,
    [JSON.stringify(rows)],
  );
}

/** One pull request per key: the one that was stored first, whatever spelling of its URL it has. */
function distinct(pullRequests: readonly ProducedPullRequest[]): ProducedPullRequest[] {
  const inOrder = pullRequests.toSorted(
    (a, b) => a.createdAt.getTime() - b.createdAt.getTime() || (a.url < b.url ? -1 : 1),
  );
  return [...Map.groupBy(inOrder, ({ urlKey }) => urlKey).values()].map(([first]) => first!);
}

const toRow = (run: RunSnapshot, pullRequest: ProducedPullRequest) => ({
  run_uid: run.uid,
  url_key: pullRequest.urlKey,
  team_uid: run.teamUid,
  factory_uid: run.costOwner.factoryUid,
  root_run_uid: run.costOwner.rootRunUid,
  url: pullRequest.url,
  provider: pullRequest.provider,
  repo_full_name: pullRequest.repoFullName,
  pr_number: pullRequest.number,
  title: pullRequest.title,
  created_at: pullRequest.createdAt,
  run_created_at: run.createdAt,
  additions: pullRequest.additions,
  deletions: pullRequest.deletions,
  changed_files: pullRequest.changedFiles,
  num_commits: pullRequest.numCommits,
});
