import type { Sql } from "@millwright/database";
import type { RunState } from "../domain/run.ts";
import type { Child } from "../domain/wait.ts";

type Row = { uid: string; title: string; state: RunState; status_message: string | null };

/**
 * Returns children whose latest end was not reported to the parent; if `named` is not empty, only these. The parent
 * must be locked.
 */
export async function unreportedChildren(tx: Sql, parentUid: string, named: readonly string[] = []): Promise<Child[]> {
  const { rows } = await tx.query<Row>(
    `SELECT c.uid, c.title, c.state, c.status_message FROM runs c
       LEFT JOIN reported_children t ON t.parent_run_uid = $1 AND t.child_run_uid = c.uid
      WHERE c.parent_run_uid = $1 AND coalesce(t.execution_count < c.execution_count, true)
        AND (cardinality($2::text[]) = 0 OR c.uid::text = ANY($2::text[]))
      ORDER BY c.created_at, c.uid`,
    [parentUid, named],
  );
  return rows.map(({ uid, title, state, status_message }) => ({
    uid,
    title,
    state,
    message: status_message ?? undefined,
  }));
}

/** Records that the ends of these children are being reported to the parent, which must be locked. */
export async function markReported(tx: Sql, parentUid: string, children: readonly Child[]): Promise<void> {
  if (children.length === 0) return;
  await tx.query(
    `INSERT INTO reported_children (parent_run_uid, child_run_uid, execution_count)
     SELECT $1, c.uid, c.execution_count FROM runs c WHERE c.uid = ANY($2::uuid[])
     ON CONFLICT (parent_run_uid, child_run_uid) DO UPDATE SET execution_count = excluded.execution_count`,
    [parentUid, children.map(({ uid }) => uid)],
  );
}
