import type { Sql } from "@millwright/database";
import type { Vault } from "@millwright/vault";
import { idempotencyMismatch, type IdempotentRequest } from "../domain/idempotency.ts";

/** Answers are repeated for a day. */
const KEPT_MS = 24 * 3_600_000;

/**
 * Remembers the answer to a new request and gives it back; for a known one gives the answer remembered then. Concurrent
 * requests of one key wait for each other in their transactions. Answers are sealed: they may hold a secret shown once.
 *
 * Errors: idempotency_mismatch (conflict), when the key came with another body.
 */
export async function rememberAnswer<T>(tx: Sql, vault: Vault, request: IdempotentRequest, answer: T, now: Date): Promise<T> {
  const { principalUid, operation, key, bodyHash } = request;
  const place = `idempotency:${principalUid} ${operation} ${key}`;
  await tx.query("DELETE FROM idempotency_keys WHERE created_at < $1", [new Date(now.getTime() - KEPT_MS)]);
  await tx.query(
    "INSERT INTO idempotency_keys (principal_uid, operation, key, body_hash, answer, created_at) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING",
    [principalUid, operation, key, bodyHash, vault.seal(JSON.stringify(answer), place), now],
  );
  const { rows } = await tx.query<{ body_hash: string; answer: string }>(
    "SELECT body_hash, answer FROM idempotency_keys WHERE principal_uid = $1 AND operation = $2 AND key = $3",
    [principalUid, operation, key],
  );
  if (rows[0]?.body_hash !== bodyHash) throw idempotencyMismatch();
  return JSON.parse(vault.open(rows[0].answer, place)) as T;
}
