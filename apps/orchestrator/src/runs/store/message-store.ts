import { sendTo, type Sql } from "@millwright/database";
import type { RunUid } from "@millwright/ids";
import type { Followup } from "../domain/followup.ts";
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

/** Attachments of a message `m`, in order. */
const ATTACHMENTS = `coalesce((
  SELECT jsonb_agg(jsonb_build_object('uid', a.uid, 'fileName', a.file_name, 'mimeType', a.mime_type, 'sizeBytes', a.size_bytes, 'sha256', a.sha256) ORDER BY a.seq)
    FROM message_attachments a WHERE a.message_uid = m.uid), '[]') AS attachments`;

/** Returns the attachments of a run's prompt, in order. */
export async function promptFiles(sql: Sql, runUid: string): Promise<Attachment[]> {
  const { rows } = await sql.query<Attachment>(
    `SELECT a.uid, a.file_name AS "fileName", a.mime_type AS "mimeType", a.size_bytes AS "sizeBytes", a.sha256
       FROM messages m JOIN message_attachments a ON a.message_uid = m.uid WHERE m.run_uid = $1 AND m.kind = 'prompt' ORDER BY a.seq`,
    [runUid],
  );
  return rows;
}

/** Inserts the attachments of a message that has just been inserted. */
export async function addAttachments(tx: Sql, messageUid: string, attachments: readonly Attachment[]): Promise<void> {
  for (const [index, { uid, fileName, mimeType, sizeBytes, sha256 }] of attachments.entries()) {
    await sendTo(
      tx,
      "INSERT INTO message_attachments (message_uid, seq, uid, file_name, mime_type, size_bytes, sha256) VALUES ($1, $2, $3, $4, $5, $6, $7)",
      [messageUid, index + 1, uid, fileName, mimeType, sizeBytes, sha256],
    );
  }
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

type FollowupRow = {
  uid: string;
  seq: number;
  text: string;
  author_type: string;
  author_uid: string;
  created_at: Date;
  delivered_at: Date | null;
  undeliverable: boolean;
  undeliverable_reason: string | null;
};

/** Maximum size of the texts on one page of follow-ups, in bytes. A page has at least one follow-up. */
const PAGE_TEXT_BYTES_MAX = 2 * 1024 * 1024;

/** Returns follow-ups of a run after `afterSeq`, in order: at most `limit`, and fewer if their texts are large. */
export async function followupsOf(
  sql: Sql,
  runUid: string,
  afterSeq: number,
  limit: number,
): Promise<{ followups: Followup[]; hasMore: boolean }> {
  const { rows } = await sql.query<FollowupRow & { found: number }>(
    `SELECT uid, seq, text, author_type, author_uid, created_at, delivered_at, undeliverable, undeliverable_reason, found
       FROM (SELECT m.*, count(*) OVER () AS found, row_number() OVER (ORDER BY seq) AS nth, sum(octet_length(text)) OVER (ORDER BY seq) - octet_length(text) AS bytes_before
               FROM (SELECT * FROM messages WHERE run_uid = $1 AND kind = 'followup' AND seq > $2 ORDER BY seq LIMIT $3::int + 1) m) page
      WHERE nth <= $3 AND bytes_before < ${PAGE_TEXT_BYTES_MAX}
      ORDER BY seq`,
    [runUid, afterSeq, limit],
  );
  const followups = rows.map((row): Followup => ({
    ...{
      uid: row.uid,
      seq: row.seq,
      text: row.text,
      authorType: row.author_type,
      authorUid: row.author_uid,
      createdAt: row.created_at,
    },
    ...(row.undeliverable && { undeliverable: row.undeliverable_reason ?? "run_ended" }),
    ...(row.delivered_at && { deliveredAt: row.delivered_at }),
  }));
  return { followups, hasMore: (rows[0]?.found ?? 0) > followups.length };
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

/** Returns the texts of messages as they were sent, by uid. */
export async function textsOf(sql: Sql, uids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (uids.length === 0) return new Map();
  const { rows } = await sql.query<{ uid: string; text: string }>(
    "SELECT uid, text FROM messages WHERE uid = ANY($1::uuid[])",
    [uids],
  );
  return new Map(rows.map(({ uid, text }) => [uid, text]));
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
