import { createHash } from "node:crypto";
import type { Sql } from "@millwright/database";
import { idempotencyMismatch } from "@millwright/idempotency";
import type { OnceRequest } from "../domain/once-request.ts";

/** How long a result is stored for repeated requests. */
const RETENTION = "24 hours";

/**
 * Runs `f` once per principal, operation and key, and returns its first result to later calls. Of two concurrent calls,
 * the second waits for the first one's transaction. Without a key, always runs `f`.
 *
 * Errors: idempotency_mismatch (conflict) if the key was used with another body before.
 */
export async function once<T>(
  tx: Sql,
  { principalUid, operation, key, body }: OnceRequest,
  f: () => Promise<T>,
): Promise<T> {
  if (!key) return f();
  const names = [principalUid, operation, key];
  const hash = createHash("sha256").update(JSON.stringify(body)).digest();
  await tx.query(
    `DELETE FROM idempotency_keys WHERE principal_uid = $1 AND operation = $2 AND key = $3 AND created_at < now() - interval '${RETENTION}'`,
    names,
  );
  const { rowCount } = await tx.query(
    `INSERT INTO idempotency_keys (principal_uid, operation, key, body_hash, response) VALUES ($1, $2, $3, $4, 'null') ON CONFLICT DO NOTHING`,
    [...names, hash],
  );
  if (rowCount === 0) return earlierResponse<T>(tx, names, hash);
  const response = await f();
  await tx.query(
    "UPDATE idempotency_keys SET response = $4::jsonb WHERE principal_uid = $1 AND operation = $2 AND key = $3",
    [...names, JSON.stringify(response)],
  );
  return response;
}

async function earlierResponse<T>(tx: Sql, names: string[], hash: Buffer): Promise<T> {
  const { rows } = await tx.query<{ body_hash: Uint8Array; response: T }>(
    "SELECT body_hash, response FROM idempotency_keys WHERE principal_uid = $1 AND operation = $2 AND key = $3",
    names,
  );
  const earlier = rows[0];
  if (!earlier || !hash.equals(earlier.body_hash)) throw idempotencyMismatch();
  return earlier.response;
}

/** Deletes results that are too old to be repeated. */
export async function sweepIdempotencyKeys(sql: Sql): Promise<void> {
  await sql.query(`DELETE FROM idempotency_keys WHERE created_at < now() - interval '${RETENTION}'`);
}
