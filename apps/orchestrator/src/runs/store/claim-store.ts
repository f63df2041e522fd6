import type { Sql } from "@millwright/database";
import type { Attachment } from "../domain/message.ts";
import type { LockedRun } from "../domain/run-change.ts";
import { ATTACHMENT } from "./attachment-store.ts";

/** What an accepted execution starts with, besides its messages. */
export type ClaimedExecution = {
  readonly leaseExpiresAt: Date;
  /**
   * The workspace that it starts with: its own checkpoint, else the newest workspace that earlier executions of its
   * conversation with the same owner saved.
   */
  readonly snapshotKey: string | undefined;
  /**
   * The attachments of messages that were delivered to agents in its conversation, by runs with the same owner; oldest
   * first.
   */
  readonly earlierAttachments: readonly Attachment[];
};

type Row = {
  execution_id: number;
  expires_at: Date;
  snapshot_key: string | null;
  earlier_attachments: Attachment[] | null;
};

/** Returns what accepted executions start with, by execution id. */
export async function readClaimedExecutions(
  sql: Sql,
  runs: readonly Pick<LockedRun, "conversationUid" | "owner" | "execution">[],
): Promise<ReadonlyMap<number, ClaimedExecution>> {
  const given = runs.map(({ conversationUid, owner, execution }) => ({
    execution_id: execution.id,
    conversation_uid: conversationUid,
    owner_type: owner.type,
    owner_uid: owner.uid,
  }));
  const { rows } = await sql.query<Row>(READ, [JSON.stringify(given)]);
  return new Map(
    rows.map((row) => [
      row.execution_id,
      {
        leaseExpiresAt: row.expires_at,
        snapshotKey: row.snapshot_key ?? undefined,
        earlierAttachments: row.earlier_attachments ?? [],
      },
    ]),
  );
}

/** OFFSET 0: the runs of a conversation are read first, by their own index. */
const OF_CONVERSATION = `(
  SELECT uid, created_at FROM (SELECT * FROM runs WHERE conversation_uid = c.conversation_uid OFFSET 0) of_conversation
   WHERE owner_type = c.owner_type AND owner_uid = c.owner_uid)`;

const READ = `
  SELECT c.execution_id, l.expires_at, workspace.key AS snapshot_key, earlier.attachments AS earlier_attachments
    FROM jsonb_to_recordset($1::jsonb) AS c (execution_id bigint, conversation_uid uuid, owner_type text, owner_uid uuid)
    JOIN leases l ON l.execution_id = c.execution_id
    LEFT JOIN LATERAL (
      SELECT coalesce(x.snapshot_key, x.checkpoint_key) AS key FROM ${OF_CONVERSATION} r JOIN executions x ON x.run_uid = r.uid
       WHERE x.id <= c.execution_id AND coalesce(x.snapshot_key, x.checkpoint_key) IS NOT NULL ORDER BY x.id DESC LIMIT 1) workspace ON true
   CROSS JOIN LATERAL (
      SELECT jsonb_agg(${ATTACHMENT} ORDER BY r.created_at, r.uid, m.seq, a.seq) AS attachments
        FROM ${OF_CONVERSATION} r JOIN messages m ON m.run_uid = r.uid JOIN message_attachments a ON a.message_uid = m.uid
       WHERE m.delivered_at IS NOT NULL) earlier
   WHERE l.execution_id = ANY (ARRAY(SELECT (jsonb_array_elements($1::jsonb)->>'execution_id')::bigint))`;
