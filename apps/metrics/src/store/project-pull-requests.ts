import type { Sql } from "@millwright/database";
import { isCurrent } from "./activity-store.ts";

/**
 * Recomputes the rows of a factory's pull requests from what runs, code hosts and the ledger have reported. The caller
 * has locked the factory (`lockFactories`). The result depends on those facts alone, so it may run after every change,
 * in any order. Pull requests that no run of the factory produced are ignored.
 *
 * A pull request of a local repository has no code host: it is open until its head is part of its base branch, its
 * history is complete, and persons cannot change its code.
 */
export async function projectPullRequests(tx: Sql, factoryUid: string, urlKeys: readonly string[]): Promise<void> {
  if (urlKeys.length > 0) await tx.query(PROJECT, [factoryUid, urlKeys]);
}

const COLUMNS = [
  "url",
  "provider",
  "repo_full_name",
  "pr_number",
  "title",
  "author_login",
  "state",
  "has_host_facts",
  "opened_at",
  "first_human_review_at",
  "merged_at",
  "closed_at",
  "updated_at",
  "additions",
  "deletions",
  "changed_files",
  "num_commits",
  "history_complete",
  "human_code_change",
  "human_interactions",
  "human_total",
  "runs",
  "kickoff_at",
  "kickoff_run_uid",
  "first_seen_at",
  "inference_micros",
  "compute_micros",
  "platform_micros",
];

/** Counters of `human_interactions` that activities are counted in. */
const KINDS = [
  "opened",
  "code_push",
  "review_approved",
  "review_changes_requested",
  "review_commented",
  "comment",
  "review_comment",
  "pr_action",
];

/** The newest value that a run reported; runs that did not measure it do not hide it. */
const newest = (column: string): string =>
  `(array_agg(p.${column} ORDER BY p.created_at DESC, p.run_uid) FILTER (WHERE p.${column} IS NOT NULL))[1] AS ${column}`;

/** One row per pull request that runs of the factory produced. */
const PRODUCED = `
  SELECT p.team_uid,
         p.url_key,
         (array_agg(p.url ORDER BY p.created_at, p.run_uid))[1] AS url,
         (array_agg(p.provider ORDER BY p.created_at, p.run_uid))[1] AS provider,
         (array_agg(p.repo_full_name ORDER BY p.created_at, p.run_uid))[1] AS repo_full_name,
         (array_agg(p.pr_number ORDER BY p.created_at, p.run_uid))[1] AS pr_number,
         (array_agg(p.title ORDER BY p.created_at DESC, p.run_uid) FILTER (WHERE p.title <> ''))[1] AS title,
         ${newest("additions")},
         ${newest("deletions")},
         ${newest("changed_files")},
         ${newest("num_commits")},
         min(p.created_at) AS first_seen_at,
         max(p.created_at) AS last_seen_at,
         min(p.run_created_at) AS kickoff_at,
         (array_agg(p.run_uid ORDER BY p.run_created_at, p.run_uid))[1] AS kickoff_run_uid,
         jsonb_agg(jsonb_build_object(
             'run_id', p.run_uid,
             'root_run_id', p.root_run_uid,
             'created_at', to_char(p.run_created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'))
           ORDER BY p.run_created_at, p.run_uid) AS runs,
         coalesce(sum(r.person_follow_ups), 0)::integer AS follow_ups
    FROM produced_pull_requests p
    LEFT JOIN run_facts r ON r.run_uid = p.run_uid
   WHERE p.team_uid = (SELECT team_uid FROM run_facts WHERE factory_uid = $1 LIMIT 1)
     AND p.url_key = ANY($2::text[])
     AND p.factory_uid = $1
   GROUP BY p.team_uid, p.url_key`;

const PROJECT = `
  INSERT INTO factory_pull_requests AS f (factory_uid, url_key, team_uid, ${COLUMNS.join(", ")})
  SELECT $1::uuid,
         p.url_key,
         p.team_uid,
         coalesce(h.url, p.url),
         coalesce(h.provider, p.provider),
         coalesce(h.repo_full_name, p.repo_full_name),
         coalesce(h.pr_number, p.pr_number),
         coalesce(h.title, p.title),
         h.author_login,
         coalesce(h.state, 'open'),
         known.by_host,
         coalesce(h.opened_at, CASE WHEN known.is_local THEN p.first_seen_at END),
         a.first_human_review_at,
         h.merged_at,
         h.closed_at,
         coalesce(h.updated_at, p.last_seen_at),
         coalesce(h.additions, p.additions),
         coalesce(h.deletions, p.deletions),
         coalesce(h.changed_files, p.changed_files),
         coalesce(h.num_commits, p.num_commits),
         known.is_local OR a.was_opening_seen,
         CASE WHEN known.is_local THEN false
              WHEN NOT known.by_host THEN NULL
              WHEN a.opened + a.code_push > 0 THEN true
              WHEN a.was_opening_seen THEN false END,
         CASE WHEN known.by_host OR known.is_local THEN jsonb_build_object(
           ${KINDS.map((kind) => `'${kind}', a.${kind}`).join(", ")}, 'follow_up_message', p.follow_ups, 'total', a.total + p.follow_ups) END,
         CASE WHEN known.by_host OR known.is_local THEN a.total + p.follow_ups END,
         p.runs,
         p.kickoff_at,
         p.kickoff_run_uid,
         p.first_seen_at,
         s.inference_micros,
         s.compute_micros,
         s.platform_micros
    FROM (${PRODUCED}) p
    LEFT JOIN pull_requests h ON h.team_uid = p.team_uid AND h.url_key = p.url_key
   CROSS JOIN LATERAL (
         SELECT h.url_key IS NOT NULL AS by_host, coalesce(h.provider, p.provider) = 'LOCAL' AS is_local) known
   CROSS JOIN LATERAL (
         SELECT coalesce(bool_or(kind = 'opened'), false) AS was_opening_seen,
                min(occurred_at) FILTER (WHERE is_counted
                  AND kind IN ('review_approved', 'review_changes_requested', 'review_commented')) AS first_human_review_at,
                (count(*) FILTER (WHERE is_counted))::integer AS total,
                ${KINDS.map((kind) => `(count(*) FILTER (WHERE is_counted AND kind = '${kind}'))::integer AS ${kind}`).join(", ")}
           FROM (SELECT kind, occurred_at, is_person AND NOT is_dismissed AS is_counted
                   FROM pull_request_activities activity
                  WHERE team_uid = p.team_uid AND url_key = p.url_key AND ${isCurrent("activity", "h")}) activities) a
   CROSS JOIN LATERAL (
         SELECT coalesce(sum(inference_micros), 0)::bigint AS inference_micros,
                coalesce(sum(compute_micros), 0)::bigint AS compute_micros,
                coalesce(sum(platform_micros), 0)::bigint AS platform_micros
           FROM pull_request_shares
          WHERE factory_uid = $1 AND url_key = p.url_key) s
  ON CONFLICT (factory_uid, url_key) DO UPDATE
  SET ${COLUMNS.map((column) => `${column} = excluded.${column}`).join(", ")}
  WHERE f.* IS DISTINCT FROM excluded.*`;
