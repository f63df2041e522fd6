import type { Sql } from "@millwright/database";
import type { Activity } from "../domain/pull-request-fact.ts";
import { jsonColumns } from "./json-columns.ts";

/**
 * Stores what was done to a pull request; a repeated activity changes nothing. A dismissal marks its review, also if it is stored before the
 * review itself.
 */
export async function storeActivities(
  tx: Sql,
  teamUid: string,
  urlKey: string,
  activities: readonly Activity[],
): Promise<void> {
  if (activities.length === 0) return;
  const rows = activities.map(({ key, kind, actorLogin, isPerson, isDismissed, isApproximate, occurredAt }) => ({
    activity_key: key,
    kind,
    actor_login: actorLogin,
    is_person: isPerson,
    is_dismissed: isDismissed,
    is_approximate: isApproximate ?? false,
    occurred_at: occurredAt.toISOString(),
  }));
  await Promise.all([
    tx.query(STORE, [teamUid, urlKey, JSON.stringify(rows)]),
    tx.query(WITHDRAW_APPROVALS, [teamUid, urlKey]),
  ]);
}

const COLUMNS = jsonColumns({
  activity_key: "text",
  kind: "text",
  actor_login: "text",
  is_person: "boolean",
  is_dismissed: "boolean",
  is_approximate: "boolean",
  occurred_at: "timestamptz",
});

/** A dismissal does not name the verdict, so the review's own activity decides the kind. */
const STORE = `
  INSERT INTO pull_request_activities AS a (team_uid, url_key, ${COLUMNS.list()})
  SELECT $1, $2, ${COLUMNS.list()}
    FROM json_to_recordset($3::json) AS new (${COLUMNS.definitions})
   ORDER BY activity_key
  ON CONFLICT (team_uid, url_key, activity_key) DO UPDATE
  SET kind = CASE WHEN excluded.is_dismissed THEN a.kind ELSE excluded.kind END,
      is_dismissed = a.is_dismissed OR excluded.is_dismissed,
      occurred_at = least(a.occurred_at, excluded.occurred_at)`;

/** GitLab withdraws approvals by person: a withdrawal dismisses that person's earlier approvals. */
const WITHDRAW_APPROVALS = `
  UPDATE pull_request_activities a
     SET is_dismissed = true
   WHERE a.team_uid = $1
     AND a.url_key = $2
     AND a.activity_key LIKE 'approval:%'
     AND NOT a.is_dismissed
     AND EXISTS (SELECT FROM pull_request_activities w
                  WHERE w.team_uid = a.team_uid
                    AND w.url_key = a.url_key
                    AND w.activity_key LIKE 'unapproval:%'
                    AND w.actor_login = a.actor_login
                    AND w.occurred_at >= a.occurred_at)`;

/**
 * SQL: whether an activity is not replaced by the history that was read from the code host. `activity` and `pullRequest` are the aliases of the
 * tables; the pull request may be absent.
 */
export const isCurrent = (activity: string, pullRequest: string): string =>
  `(NOT ${activity}.is_approximate OR ${activity}.occurred_at > coalesce(${pullRequest}.history_read_to, '-infinity'))`;
