import type { Sql } from "@millwright/database";
import type { Followup } from "../domain/followup.ts";

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
    undeliverable: row.undeliverable ? (row.undeliverable_reason ?? "run_ended") : undefined,
    deliveredAt: row.delivered_at ?? undefined,
  }));
  return { followups, hasMore: (rows[0]?.found ?? 0) > followups.length };
}

/** Returns the texts of messages as they were sent, by uid. */
export async function textsOfMessages(sql: Sql, uids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  if (uids.length === 0) return new Map();
  const { rows } = await sql.query<{ uid: string; text: string }>(
    "SELECT uid, text FROM messages WHERE uid = ANY($1::uuid[])",
    [uids],
  );
  return new Map(rows.map(({ uid, text }) => [uid, text]));
}
