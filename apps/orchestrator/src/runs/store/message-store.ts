import { addAttachments, ATTACHMENTS } from "./attachment-store.ts";
import { sendTo, type Sql } from "@millwright/database";
import type { RunUid } from "@millwright/ids";
import type { Message, NewMessage } from "../domain/message.ts";

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

/** An execution that is being accepted. */
export type AcceptedExecution = { readonly runUid: string; readonly executionId: number };

/**
 * Assigns all messages that the agents of the runs have not received to the executions that are being accepted. Returns
 * them by execution id, oldest first.
 */
export async function assignInputs(
  tx: Sql,
  accepted: readonly AcceptedExecution[],
): Promise<ReadonlyMap<number, readonly Message[]>> {
  if (accepted.length === 0) return new Map();
  const { rows } = await tx.query<Message & { seq: number; execution_id: number }>(
    `UPDATE messages m SET execution_id = c.execution_id, taken_as = 'input'
       FROM jsonb_to_recordset($1::jsonb) AS c (run_uid uuid, execution_id bigint)
      WHERE m.run_uid = ANY (ARRAY(SELECT (jsonb_array_elements($1::jsonb)->>'run_uid')::uuid))
        AND m.run_uid = c.run_uid AND m.delivered_at IS NULL AND NOT m.undeliverable
     RETURNING m.execution_id, m.uid, m.kind, m.text, m.mode, m.seq, ${ATTACHMENTS}`,
    [JSON.stringify(accepted.map(({ runUid, executionId }) => ({ run_uid: runUid, execution_id: executionId })))],
  );
  const ordered = rows.toSorted((a, b) => a.seq - b.seq);
  const inputs = Map.groupBy(ordered, ({ execution_id: executionId }) => executionId);
  return new Map(
    [...inputs].map(([executionId, messages]) => [
      executionId,
      messages.map(({ uid, kind, text, mode, attachments }) => ({ uid, kind, text, mode, attachments })),
    ]),
  );
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
