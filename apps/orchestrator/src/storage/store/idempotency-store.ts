import { createHash } from "node:crypto";
import type { Sql } from "@millwright/database";
import { IdempotencyStore, type IdempotentRequest } from "@millwright/idempotency";
import type { OnceRequest } from "../domain/once-request.ts";

const store = new IdempotencyStore({ retentionMs: 24 * 3_600_000 });

/** Runs `f` once per principal, operation and key (`IdempotencyStore.once`). Without a key, always runs `f`. */
export const once = <T>(tx: Sql, request: OnceRequest, f: () => Promise<T>): Promise<T> =>
  store.once(tx, stored(request), undefined, f);

/**
 * Returns the result of an earlier identical request, or undefined; without a key, undefined. Errors:
 * idempotency_mismatch (conflict).
 */
export async function firstResult(sql: Sql, request: OnceRequest): Promise<unknown> {
  const key = stored(request);
  return key && store.find(sql, key, undefined);
}

const stored = ({ key, body, ...names }: OnceRequest): IdempotentRequest | undefined =>
  key ? { ...names, key, bodyHash: hashOf(body) } : undefined;

/** Deletes results that are too old to be repeated. */
export const sweepIdempotencyKeys = (sql: Sql): Promise<void> => store.prune(sql);

/** Returns a hash as the text form of the column's type, which is bytea here. */
const hashOf = (body: unknown): string => `\\x${createHash("sha256").update(JSON.stringify(body)).digest("hex")}`;
