import type { Sql } from "@millwright/database";
import { idempotencyMismatch, type IdempotentRequest } from "../domain/idempotency.ts";
import type { JsonObject } from "../domain/json.ts";

/** A client may repeat its request for 24 hours. */
const KEEP_MS = (24 * 60 + 10) * 60_000;

/**
 * Remembers the answer to a new request and gives it back; for a known one gives the answer remembered then. Concurrent
 * requests of one key wait for each other in their transactions.
 *
 * Errors: idempotency_mismatch (conflict), when the key came with another body.
 */
export async function rememberAnswer(sql: Sql, request: IdempotentRequest, answer: JsonObject, now: Date): Promise<JsonObject> {
  const { principalUid, operation, key, bodyHash } = request;
  await sql.query("DELETE FROM idempotency_keys WHERE created_at < $1::timestamptz", [new Date(now.getTime() - KEEP_MS).toISOString()]);
  await sql.query(
    `INSERT INTO idempotency_keys (principal_uid, operation, key, body_hash, answer, created_at)
     VALUES ($1, $2, $3, $4, $5::jsonb, $6::timestamptz) ON CONFLICT DO NOTHING`,
    [principalUid, operation, key, bodyHash, JSON.stringify(answer), now.toISOString()],
  );
  const { rows } = await sql.query<{ body_hash: string; answer: JsonObject }>(
    "SELECT body_hash, answer FROM idempotency_keys WHERE principal_uid = $1 AND operation = $2 AND key = $3",
    [principalUid, operation, key],
  );
  if (rows[0]?.body_hash !== bodyHash) throw idempotencyMismatch();
  return rows[0].answer;
}
