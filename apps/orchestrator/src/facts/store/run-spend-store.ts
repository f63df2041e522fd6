import type { Sql } from "@millwright/database";
import { omitUndefined } from "@millwright/json";
import type { ComputeInterval, ModelCallFacts, ProducedPullRequest } from "../domain/run-facts.ts";

/**
 * The condition that a person sent a message of kind `followup`. In rows older than the column `by_person`, messages
 * that were created for a cause have a version 8 uid.
 */
const BY_PERSON = "coalesce(by_person, author_type = 'user' AND substr(uid::text, 15, 1) <> '8')";

/**
 * Reads what runs used and produced, one statement for each kind of fact. Micro-dollars are passed as text, because
 * int8 exceeds the safe integers of a number.
 */
export const runSpendStore = {
  async modelCalls(sql: Sql, runUids: readonly string[]): Promise<ReadonlyMap<string, ModelCallFacts[]>> {
    const { rows } = await sql.query<CallRow>(
      `SELECT run_uid, call_id, recorded_at, model_id, input_tokens, output_tokens, cache_read_tokens, cache_write_tokens,
              cost_micros::text AS cost_micros, price_version
         FROM usage_rows
        WHERE run_uid = ANY($1::uuid[])
        ORDER BY run_uid, recorded_at, call_id`,
      [runUids],
    );
    return byRun(rows, toModelCall);
  },

  async computeIntervals(sql: Sql, runUids: readonly string[]): Promise<ReadonlyMap<string, ComputeInterval[]>> {
    const { rows } = await sql.query<OfRun & ComputeInterval>(
      `SELECT run_uid, execution_id AS "executionId", attempt, started_at AS "startedAt", ended_at AS "endedAt", vcpus, memory_gb AS "memoryGb"
         FROM compute_intervals
        WHERE run_uid = ANY($1::uuid[])
        ORDER BY run_uid, execution_id, attempt`,
      [runUids],
    );
    return byRun(rows, ({ executionId, attempt, startedAt, endedAt, vcpus, memoryGb }) => ({
      executionId,
      attempt,
      startedAt,
      endedAt,
      vcpus,
      memoryGb,
    }));
  },

  /**
   * Returns the pull requests opened for a run, and those that only an artifact names. The same pull request may occur
   * twice.
   */
  async pullRequests(sql: Sql, runUids: readonly string[]): Promise<ReadonlyMap<string, ProducedPullRequest[]>> {
    const { rows } = await sql.query<PullRow>(
      `SELECT run_uid, url, kind, owner || '/' || repo AS repository, number, title, created_at, additions, deletions, changed_files, num_commits
         FROM pull_requests
        WHERE run_uid = ANY($1::uuid[])
       UNION ALL
       SELECT run_uid, data ->> 'url', '', '', 0, coalesce(data ->> 'title', ''), created_at, NULL, NULL, NULL, NULL
         FROM artifacts
        WHERE run_uid = ANY($1::uuid[])
          AND artifact_type = 'PULL_REQUEST'
          AND committed_at IS NOT NULL
          AND coalesce(data ->> 'url', '') <> ''
        ORDER BY created_at, kind DESC`,
      [runUids],
    );
    return byRun(rows, toPullRequest);
  },

  async personFollowUps(sql: Sql, runUids: readonly string[]): Promise<ReadonlyMap<string, number>> {
    const { rows } = await sql.query<OfRun & { count: number }>(
      `SELECT run_uid, count(*) AS count
         FROM messages
        WHERE run_uid = ANY($1::uuid[])
          AND kind = 'followup'
          AND ${BY_PERSON}
        GROUP BY run_uid`,
      [runUids],
    );
    return new Map(rows.map(({ run_uid, count }) => [run_uid, count]));
  },
};

type OfRun = { run_uid: string };
type CallRow = OfRun & {
  call_id: string;
  recorded_at: Date;
  model_id: string;
  input_tokens: number | null;
  output_tokens: number | null;
  cache_read_tokens: number | null;
  cache_write_tokens: number | null;
  cost_micros: string | null;
  price_version: number | null;
};
type PullRow = OfRun &
  Pick<ProducedPullRequest, "url" | "kind" | "repository" | "number" | "title"> & {
    created_at: Date;
    additions: number | null;
    deletions: number | null;
    changed_files: number | null;
    num_commits: number | null;
  };

function byRun<R extends OfRun, T>(rows: readonly R[], toFact: (row: R) => T): ReadonlyMap<string, T[]> {
  const facts = new Map<string, T[]>();
  for (const row of rows) {
    const known = facts.get(row.run_uid);
    if (known) known.push(toFact(row));
    else facts.set(row.run_uid, [toFact(row)]);
  }
  return facts;
}

const toModelCall = (row: CallRow): ModelCallFacts => ({
  callId: row.call_id,
  recordedAt: row.recorded_at,
  modelId: row.model_id,
  ...omitUndefined({
    inputTokens: row.input_tokens ?? undefined,
    outputTokens: row.output_tokens ?? undefined,
    cacheReadTokens: row.cache_read_tokens ?? undefined,
    cacheWriteTokens: row.cache_write_tokens ?? undefined,
    costMicros: row.cost_micros === null ? undefined : BigInt(row.cost_micros),
    priceVersion: row.price_version ?? undefined,
  }),
});

const toPullRequest = ({ url, kind, repository, number, title, ...row }: PullRow): ProducedPullRequest => ({
  ...{ url, kind, repository, number, title },
  createdAt: row.created_at,
  ...omitUndefined({
    additions: row.additions ?? undefined,
    deletions: row.deletions ?? undefined,
    changedFiles: row.changed_files ?? undefined,
    numCommits: row.num_commits ?? undefined,
  }),
});
