import { createHash } from "node:crypto";
import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { idempotencyMismatch } from "@millwright/idempotency";
import type { Vault } from "@millwright/vault";
import { canonicalJson } from "@millwright/json";
import type { RespondOnce, IdempotencyKey } from "../rest/index.ts";
import type { Tx } from "../identity/index.ts";

const RETENTION_MS = 24 * 60 * 60 * 1000;

type Deps = { readonly vault: Vault; readonly clock: Clock };

/**
 * Executes a create once per Idempotency-Key; without a key, once in a transaction. `create` returns the public body.
 */
export type CreateOnce = <T>(
  caller: Caller,
  idempotency: IdempotencyKey | undefined,
  create: (tx: Tx) => Promise<T>,
) => Promise<T>;

/**
 * Returns a CreateOnce. The row of the key is written in the transaction of the create, so either both exist or
 * neither. A concurrent repetition waits until the first one commits. Responses are stored encrypted for 24 h.
 *
 * Errors: idempotency_mismatch (conflict, not retryable) for another body under the same key.
 */
export const createOnce =
  ({
    transaction,
    vault,
    clock,
  }: Deps & { readonly transaction: <T>(f: (tx: Tx) => Promise<T>) => Promise<T> }): CreateOnce =>
  <T>(caller: Caller, idempotency: IdempotencyKey | undefined, create: (tx: Tx) => Promise<T>) =>
    transaction(async (tx) => {
      if (!idempotency) return create(tx);
      const [row, now] = [rowOf(caller, idempotency), clock.now()];
      if (!(await claim(tx.sql, row, idempotency.bodyHash, now)))
        return (await storedResponse<T>(tx.sql, vault, row, idempotency.bodyHash, now))!.response;
      const response = await create(tx);
      await tx.sql.query(
        "UPDATE idempotency_keys SET response = $4 WHERE principal = $1 AND operation = $2 AND key = $3",
        [...row, seal(vault, row, response)],
      );
      return response;
    });

/**
 * Returns the equivalent for an operation of another service that is itself idempotent by key and cannot share a
 * transaction with the row. Concurrent repetitions each call that service, and all return the response that was stored
 * first.
 */
export const respondOnce =
  ({ sql, vault, clock }: Deps & { readonly sql: Sql }): RespondOnce =>
  async <T>(caller: Caller, idempotency: IdempotencyKey, act: () => Promise<T>) => {
    const [row, hash] = [rowOf(caller, idempotency), idempotency.bodyHash];
    const known = await storedResponse<T>(sql, vault, row, hash, clock.now());
    if (known) return known.response;
    const response = await act();
    if (await claim(sql, row, hash, clock.now(), seal(vault, row, response))) return response;
    return (await storedResponse<T>(sql, vault, row, hash, clock.now()))?.response ?? response;
  };

type Row = readonly [principal: string, operation: string, key: string];

const rowOf = (caller: Caller, { operation, key }: IdempotencyKey): Row => [
  `${caller.principal.type}:${caller.principal.uid}`,
  `${operation} ${rightsOf(caller)}`,
  key,
];

/** Returns a hash of the caller's rights: a stored response is only returned to a caller with the same rights. */
const rightsOf = ({ teams, personal, activeTeamUid, platformAdmin, run }: Caller): string =>
  createHash("sha256")
    .update(canonicalJson({ teams, personal, activeTeamUid, platformAdmin, run: run?.runUid }))
    .digest("base64url");

const sealContext = (row: Row): string => `idempotency:${row.join(" ")}`;
const seal = (vault: Vault, row: Row, response: unknown): string =>
  vault.seal(JSON.stringify(response), sealContext(row));

/** Inserts the row of a key. Returns whether the key is new or its earlier row has expired. */
async function claim(
  sql: Sql,
  row: Row,
  bodyHash: string,
  now: Date,
  response: string | null = null,
): Promise<boolean> {
  const { rowCount } = await sql.query(
    `INSERT INTO idempotency_keys AS i (principal, operation, key, body_hash, expires_at, response) VALUES ($1, $2, $3, $4, $5::timestamptz, $7::text)
     ON CONFLICT (principal, operation, key) DO UPDATE SET body_hash = excluded.body_hash, response = excluded.response, expires_at = excluded.expires_at
       WHERE i.expires_at <= $6::timestamptz
     RETURNING key`,
    [...row, bodyHash, new Date(now.getTime() + RETENTION_MS), now, response],
  );
  return rowCount === 1;
}

/** Returns the stored response of a key, or undefined. Errors: idempotency_mismatch. */
async function storedResponse<T>(
  sql: Sql,
  vault: Vault,
  row: Row,
  bodyHash: string,
  now: Date,
): Promise<{ response: T } | undefined> {
  const {
    rows: [first],
  } = await sql.query<{ body_hash: string; response: string }>(
    "SELECT body_hash, response FROM idempotency_keys WHERE principal = $1 AND operation = $2 AND key = $3 AND expires_at > $4::timestamptz",
    [...row, now],
  );
  if (!first) return undefined;
  if (first.body_hash !== bodyHash) throw idempotencyMismatch();
  return { response: JSON.parse(vault.open(first.response, sealContext(row))) as T };
}

/** Deletes expired responses. */
export async function pruneIdempotency(sql: Sql, now: Date): Promise<void> {
  await sql.query("DELETE FROM idempotency_keys WHERE expires_at <= $1", [now]);
}
