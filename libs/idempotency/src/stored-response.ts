import type { Sql } from "@millwright/database";
import type { Vault } from "@millwright/vault";
import { idempotencyMismatch, type IdempotentRequest } from "./idempotent-request.ts";

/**
 * How long a response is stored: a client may retry for 24 hours, plus a margin, so that no upstream service stores
 * longer than we do.
 */
const KEPT_MS = (24 * 60 + 10) * 60_000;

/**
 * Stores the response to a new request in the table `idempotency_keys` and returns it; for a known request returns the
 * stored response. Concurrent requests with one key are serialised by their transactions. With a vault, the column
 * `response` is encrypted text, for responses with a secret that is shown once; without, it is jsonb.
 *
 * Errors: idempotency_mismatch (conflict) if the key was used with another body.
 */
export async function storeResponse<T>(
  tx: Sql,
  request: IdempotentRequest,
  response: T,
  now: Date,
  vault?: Vault,
): Promise<T> {
  const { principalUid, operation, key, bodyHash } = request;
  const text = JSON.stringify(response);
  await tx.query("DELETE FROM idempotency_keys WHERE created_at < $1::timestamptz", [
    new Date(now.getTime() - KEPT_MS).toISOString(),
  ]);
  await tx.query(
    `INSERT INTO idempotency_keys (principal_uid, operation, key, body_hash, response, created_at)
     VALUES ($1, $2, $3, $4, $5, $6::timestamptz) ON CONFLICT DO NOTHING`,
    [principalUid, operation, key, bodyHash, vault?.seal(text, placeOf(request)) ?? text, now.toISOString()],
  );
  return (await storedResponse<T>(tx, request, now, vault))!;
}

/**
 * Returns the stored response of an earlier request; the resources in it may have been deleted since. Errors:
 * idempotency_mismatch (conflict).
 */
export async function storedResponse<T>(
  sql: Sql,
  request: IdempotentRequest,
  now: Date,
  vault?: Vault,
): Promise<T | undefined> {
  const { principalUid, operation, key, bodyHash } = request;
  const {
    rows: [known],
  } = await sql.query<{ body_hash: string; response: string }>(
    "SELECT body_hash, response::text FROM idempotency_keys WHERE principal_uid = $1 AND operation = $2 AND key = $3 AND created_at >= $4::timestamptz",
    [principalUid, operation, key, new Date(now.getTime() - KEPT_MS).toISOString()],
  );
  if (!known) return undefined;
  if (known.body_hash !== bodyHash) throw idempotencyMismatch();
  return JSON.parse(vault?.open(known.response, placeOf(request)) ?? known.response) as T;
}

const placeOf = ({ principalUid, operation, key }: IdempotentRequest): string =>
  `idempotency:${principalUid} ${operation} ${key}`;
