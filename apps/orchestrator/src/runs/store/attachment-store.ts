import { sendTo, type Sql } from "@millwright/database";
import type { Attachment } from "../domain/message.ts";

/** An attachment `a`, as JSON. */
export const ATTACHMENT =
  "jsonb_build_object('uid', a.uid, 'fileName', a.file_name, 'mimeType', a.mime_type, 'sizeBytes', a.size_bytes, 'sha256', a.sha256)";

/** Attachments of a message `m`, in order. */
export const ATTACHMENTS = `coalesce((
  SELECT jsonb_agg(${ATTACHMENT} ORDER BY a.seq)
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
