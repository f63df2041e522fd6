import type { Sql } from "@millwright/database";
import type { Vault } from "@millwright/vault";
import { idempotencyMismatch, type IdempotentRequest } from "./idempotent-request.ts";

/** A client may repeat its request for 24 hours; a little longer, so that no service that is asked on its behalf remembers longer. */
const KEPT_MS = (24 * 60 + 10) * 60_000;

/**
 * Remembers the answer to a new request in the table `idempotency_keys` and gives it back; for a known one gives the answer
 * remembered then. Concurrent requests of one key wait for each other in their transactions. With a vault the column
 * `answer` is text and sealed, for answers that hold a secret shown once; without, it is jsonb.
 *
 * Errors: idempotency_mismatch (conflict), when the key came with another body.
 */
export async function storeResponse<T>(
  tx: Sql,
  request: IdempotentRequest,
  answer: T,
  now: Date,
  vault?: Vault,
): Promise<T> {
  const { principalUid, operation, key, bodyHash } = request;
  const text = JSON.stringify(answer);
  await tx.query("DELETE FROM idempotency_keys WHERE created_at < $1::timestamptz", [
    new Date(now.getTime() - KEPT_MS).toISOString(),
  ]);
  await tx.query(
    `INSERT INTO idempotency_keys (principal_uid, operation, key, body_hash, answer, created_at)
     VALUES ($1, $2, $3, $4, $5, $6::timestamptz) ON CONFLICT DO NOTHING`,
    [principalUid, operation, key, bodyHash, vault?.seal(text, placeOf(request)) ?? text, now.toISOString()],
  );
  return (await storedResponse<T>(tx, request, now, vault))!;
}

/** The answer remembered for a request that came before: what was there then need not be there any more. Errors: idempotency_mismatch (conflict). */
export async function storedResponse<T>(
  sql: Sql,
  request: IdempotentRequest,
  now: Date,
  vault?: Vault,
): Promise<T | undefined> {
  const { principalUid, operation, key, bodyHash } = request;
  const {
    rows: [known],
  } = await sql.query<{ body_hash: string; answer: string }>(
    "SELECT body_hash, answer::text FROM idempotency_keys WHERE principal_uid = $1 AND operation = $2 AND key = $3 AND created_at >= $4::timestamptz",
    [principalUid, operation, key, new Date(now.getTime() - KEPT_MS).toISOString()],
  );
  if (!known) return undefined;
  if (known.body_hash !== bodyHash) throw idempotencyMismatch();
  return JSON.parse(vault?.open(known.answer, placeOf(request)) ?? known.answer) as T;
}

const placeOf = ({ principalUid, operation, key }: IdempotentRequest): string =>
  `idempotency:${principalUid} ${operation} ${key}`;
