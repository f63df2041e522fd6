import type { Sql } from "@millwright/database";
import type { Activity } from "../domain/pull-request-fact.ts";
import { jsonColumns, statementsOf } from "./json-columns.ts";

export type ActivityOf = { readonly teamUid: string; readonly urlKey: string; readonly activity: Activity };

/**
 * Stores what was done to pull requests; a repeated activity changes nothing. A dismissal marks its review, also if it
 * is stored before the review itself.
 */
export async function storeActivities(tx: Sql, activities: readonly ActivityOf[]): Promise<void> {
  if (activities.length === 0) return;
  const rows = activities.map(({ teamUid, urlKey, activity }) => ({
    team_uid: teamUid,
    url_key: urlKey,
    activity_key: activity.key,
    kind: activity.kind,
    actor_login: activity.actorLogin,
    is_person: activity.isPerson,
    is_dismissed: activity.isDismissed,
    is_approximate: activity.isApproximate ?? false,
    occurred_at: activity.occurredAt,
  }));
  const statements = statementsOf(rows, (row) => `${row.team_uid} ${row.url_key} ${row.activity_key}`);
  await Promise.all([
    ...statements.map((statement) => tx.query(STORE, [JSON.stringify(statement)])),
    tx.query(WITHDRAW_APPROVALS, [rows.map((row) => row.team_uid), rows.map((row) => row.url_key)]),
  ]);
}

const COLUMNS = jsonColumns({
  team_uid: "uuid",
  url_key: "text",
  activity_key: "text",
  kind: "text",
  actor_login: "text",
  is_person: "boolean",
  is_dismissed: "boolean",
  is_approximate: "boolean",
  occurred_at: "timestamptz",
});

/**
 * A dismissal does not name the verdict, so the review's own activity decides the kind. A later report of an actor
 * replaces an earlier one, because the login of the bot may be known only then.
 */
const STORE = `
  INSERT INTO pull_request_activities AS a (${COLUMNS.list()})
  SELECT ${COLUMNS.list()}
    FROM json_to_recordset($1::json) AS new (${COLUMNS.definitions})
  ON CONFLICT (team_uid, url_key, activity_key) DO UPDATE
  SET kind = CASE WHEN excluded.is_dismissed THEN a.kind ELSE excluded.kind END,
      actor_login = CASE WHEN excluded.actor_login <> '' THEN excluded.actor_login ELSE a.actor_login END,
      is_person = CASE WHEN excluded.actor_login <> '' THEN excluded.is_person ELSE a.is_person END,
      is_dismissed = a.is_dismissed OR excluded.is_dismissed,
      occurred_at = least(a.occurred_at, excluded.occurred_at)`;

/** GitLab withdraws approvals by person: a withdrawal dismisses that person's earlier approvals. */
const WITHDRAW_APPROVALS = `
  UPDATE pull_request_activities a
     SET is_dismissed = true
    FROM (SELECT DISTINCT team_uid, url_key FROM unnest($1::uuid[], $2::text[]) AS given (team_uid, url_key)) changed
   WHERE a.team_uid = changed.team_uid
     AND a.url_key = changed.url_key
     AND a.activity_key LIKE 'approval:%'
     AND NOT a.is_dismissed
     AND EXISTS (SELECT FROM pull_request_activities w
                  WHERE w.team_uid = a.team_uid
                    AND w.url_key = a.url_key
                    AND w.activity_key LIKE 'unapproval:%'
                    AND w.actor_login = a.actor_login
                    AND w.occurred_at >= a.occurred_at)`;

/**
 * SQL: whether an activity is not replaced by the history that was read from the code host. `activity` and
 * `pullRequest` are the aliases of the tables; the pull request may be absent.
 */
export const isCurrent = (activity: string, pullRequest: string): string =>
  `(NOT ${activity}.is_approximate OR ${activity}.occurred_at > coalesce(${pullRequest}.history_read_to, '-infinity'))`;
