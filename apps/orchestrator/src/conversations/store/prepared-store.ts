import type { Sql } from "@millwright/database";
import { isUuid } from "@millwright/ids";
import { PREPARED_HOURS, type PreparedAttachment } from "../domain/prepared-attachment.ts";

type Row = { uid: string; file_name: string; mime_type: string; size_bytes: number | null; sha256: string | null };

/** Stores files announced for follow-ups of runs. */
export const preparedStore = {
  async insert(sql: Sql, runUid: string, files: readonly PreparedAttachment[]): Promise<void> {
    const rows = files.map(({ uid, fileName, mimeType }) => ({ uid, file_name: fileName, mime_type: mimeType }));
    await sql.query(
      `INSERT INTO prepared_attachments (uid, run_uid, file_name, mime_type)
       SELECT (f->>'uid')::uuid, $1, f->>'file_name', f->>'mime_type' FROM jsonb_array_elements($2::jsonb) AS f`,
      [runUid, JSON.stringify(rows)],
    );
  },

  /** Returns those of the files that were prepared for this run and have not expired. */
  async find(sql: Sql, runUid: string, uids: readonly string[]): Promise<PreparedAttachment[]> {
    const { rows } = await sql.query<Row>(
      `SELECT uid, file_name, mime_type, size_bytes, sha256 FROM prepared_attachments
        WHERE run_uid = $1 AND uid = ANY($2::uuid[]) AND created_at > clock_timestamp() - $3 * interval '1 hour'`,
      [runUid, uids.filter(isUuid), PREPARED_HOURS],
    );
    return rows.map(toPrepared);
  },

  /**
   * Records the content of a file, unless content is already recorded. Returns the file with the content that is
   * recorded.
   */
  async settle(
    sql: Sql,
    uid: string,
    { size, sha256 }: { size: number; sha256: string },
  ): Promise<PreparedAttachment | undefined> {
    await sql.query("UPDATE prepared_attachments SET size_bytes = $2, sha256 = $3 WHERE uid = $1 AND sha256 IS NULL", [
      uid,
      size,
      sha256,
    ]);
    const { rows } = await sql.query<Row>(
      "SELECT uid, file_name, mime_type, size_bytes, sha256 FROM prepared_attachments WHERE uid = $1",
      [uid],
    );
    return rows[0] && toPrepared(rows[0]);
  },

  /** Deletes expired files. Follow-ups that used some of them have rows of their own. */
  async sweep(sql: Sql): Promise<void> {
    await sql.query("DELETE FROM prepared_attachments WHERE created_at < clock_timestamp() - $1 * interval '1 hour'", [
      PREPARED_HOURS + 1,
    ]);
  },
};

const toPrepared = ({
  uid,
  file_name: fileName,
  mime_type: mimeType,
  size_bytes: size,
  sha256,
}: Row): PreparedAttachment => ({
  uid,
  fileName,
  mimeType,
  content: size === null || sha256 === null ? undefined : { size, sha256 },
});
