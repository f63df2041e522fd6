import { addAttachments, ATTACHMENTS } from "./attachment-store.ts";
import { sendTo, type Sql } from "@millwright/database";
import type { RunUid } from "@millwright/ids";
import type { LockedRun } from "../domain/run-change.ts";
import type { Attachment, Message, NewMessage } from "../domain/message.ts";
import { RUNS_OF_CONVERSATION } from "./run-store.ts";

/** Inserts a message of a run, which must be locked (or new). */
export async function addMessage(tx: Sql, message: NewMessage): Promise<void> {
  await sendTo(
    tx,
    `INSERT INTO messages (uid, run_uid, seq, kind, text, mode, author_type, author_uid, execution_id, taken_as, by_person)
     SELECT $1, $2, coalesce(max(seq), 0) + 1, $3, $4, $5, $6, $7, $8::bigint, CASE WHEN $8 IS NOT NULL THEN 'directive' END, $9
       FROM messages WHERE run_uid = $2`,
    [
      message.uid,
      message.runUid,
      message.kind,
      message.text,
      message.mode,
      message.author.type,
      message.author.uid,
      message.directiveTo ?? null,
      message.isByPerson ?? false,
    ],
  );
  await addAttachments(tx, message.uid, message.attachments ?? []);
}

/** Returns the run of a message. */
export async function runOfMessage(sql: Sql, uid: string): Promise<RunUid | undefined> {
  return (await sql.query<{ uid: RunUid }>("SELECT run_uid AS uid FROM messages WHERE uid = $1", [uid])).rows[0]?.uid;
}

const UNDELIVERED = "run_uid = $1 AND delivered_at IS NULL AND NOT undeliverable";

/**
 * Assigns all messages that the agent has not received to the execution that is being accepted. Returns them, oldest
 * first.
 */
export async function assignInputs(tx: Sql, runUid: string, executionId: number): Promise<Message[]> {
  const { rows } = await tx.query<Message & { seq: number }>(
    `UPDATE messages m SET execution_id = $2, taken_as = 'input' WHERE ${UNDELIVERED} RETURNING uid, kind, text, mode, seq, ${ATTACHMENTS}`,
    [runUid, executionId],
  );
  return rows
    .toSorted((a, b) => a.seq - b.seq)
    .map(({ uid, kind, text, mode, attachments }) => ({ uid, kind, text, mode, attachments }));
}

/**
 * Returns the messages that the current attempt received as input when it was accepted, oldest first. Repeated calls
 * return the same messages.
 */
export async function inputsOf(sql: Sql, runUid: string, executionId: number): Promise<Message[]> {
  const { rows } = await sql.query<Message>(
    `SELECT m.uid, m.kind, m.text, m.mode, ${ATTACHMENTS} FROM messages m JOIN executions x ON x.id = m.execution_id
      WHERE m.run_uid = $1 AND m.execution_id = $2 AND m.taken_as = 'input' AND coalesce(m.delivered_at >= x.claimed_at, true) ORDER BY m.seq`,
    [runUid, executionId],
  );
  return rows;
}

/**
 * Returns the attachments of messages that were delivered to agents in a conversation, by runs with the same owner;
 * oldest first.
 */
export async function earlierAttachments(
  sql: Sql,
  { conversationUid, owner }: Pick<LockedRun, "conversationUid" | "owner">,
): Promise<Attachment[]> {
  const { rows } = await sql.query<Attachment>(
    `SELECT a.uid, a.file_name AS "fileName", a.mime_type AS "mimeType", a.size_bytes AS "sizeBytes", a.sha256
       FROM ${RUNS_OF_CONVERSATION} r JOIN messages m ON m.run_uid = r.uid JOIN message_attachments a ON a.message_uid = m.uid
      WHERE r.owner_type = $2 AND r.owner_uid = $3 AND m.delivered_at IS NOT NULL ORDER BY r.created_at, r.uid, m.seq, a.seq`,
    [conversationUid, owner.type, owner.uid],
  );
  return rows;
}

/** Records that the agent has received these messages. */
export async function markDelivered(tx: Sql, runUid: string, uids: readonly string[]): Promise<void> {
  await sendTo(
    tx,
    "UPDATE messages SET delivered_at = clock_timestamp() WHERE run_uid = $1 AND uid = ANY($2::uuid[]) AND delivered_at IS NULL",
    [runUid, uids],
  );
}

/**
 * Returns the size of the prompt and the follow-ups that the run's agent has not received yet, in bytes. Does not read
 * the texts themselves.
 */
export async function countUndeliveredTextBytes(tx: Sql, runUid: string): Promise<number> {
  const { rows } = await tx.query<{ bytes: number }>(
    `SELECT coalesce(sum(octet_length(text)), 0)::int8 AS bytes FROM messages WHERE ${UNDELIVERED} AND kind <> 'children'`,
    [runUid],
  );
  return rows[0]?.bytes ?? 0;
}

/** Whether follow-ups were sent to an execution as directives that its agent has not received. */
export async function hasUndeliveredDirectives(tx: Sql, runUid: string, executionId: number): Promise<boolean> {
  const { rowCount } = await tx.query(
    `SELECT 1 FROM messages WHERE ${UNDELIVERED} AND execution_id = $2 AND taken_as = 'directive' LIMIT 1`,
    [runUid, executionId],
  );
  return rowCount > 0;
}

/**
 * Releases the messages of a lost attempt that its agent has not received, so that the next attempt receives them.
 * Delivered messages are in the run's events.
 */
export async function unassignMessages(tx: Sql, runUid: string, executionId: number): Promise<void> {
  await sendTo(
    tx,
    "UPDATE messages SET execution_id = NULL, taken_as = NULL WHERE run_uid = $1 AND execution_id = $2 AND delivered_at IS NULL",
    [runUid, executionId],
  );
}

/**
 * Marks follow-ups of a terminal run as undeliverable, unless they are assigned to the execution `stopping` or to an
 * execution in state STOPPING or DEBUG. Returns them, oldest first.
 */
export const dropUndeliveredFollowups = (
  tx: Sql,
  runUid: string,
  reason: string,
  stopping?: number,
): Promise<string[]> =>
  markUndeliverable(
    tx,
    runUid,
    reason,
    "execution_id IS DISTINCT FROM $3 AND NOT EXISTS (SELECT 1 FROM executions x WHERE x.id = messages.execution_id AND x.state IN ('STOPPING', 'DEBUG'))",
    stopping,
  );

/**
 * Marks follow-ups as undeliverable that were assigned to an execution which has ended without delivering them; with
 * `takenAs`, only those assigned in this way. Returns their uids, oldest first.
 */
export const dropUndeliveredFollowupsOf = (
  tx: Sql,
  runUid: string,
  reason: string,
  executionId: number,
  takenAs?: "input",
): Promise<string[]> =>
  markUndeliverable(
    tx,
    runUid,
    reason,
    takenAs ? "execution_id = $3 AND taken_as = 'input'" : "execution_id = $3",
    executionId,
  );

async function markUndeliverable(
  tx: Sql,
  runUid: string,
  reason: string,
  which: string,
  executionId: number | undefined,
): Promise<string[]> {
  const { rows } = await tx.query<{ uid: string; seq: number }>(
    `UPDATE messages SET undeliverable = true, undeliverable_reason = $2 WHERE ${UNDELIVERED} AND kind = 'followup' AND ${which} RETURNING uid, seq`,
    [runUid, reason, executionId ?? 0],
  );
  return rows.toSorted((a, b) => a.seq - b.seq).map(({ uid }) => uid);
}
