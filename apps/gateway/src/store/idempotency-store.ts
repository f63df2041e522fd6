import { createHash } from "node:crypto";
import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { IdempotencyStore, type IdempotentRequest } from "@millwright/idempotency";
import { canonicalJson } from "@millwright/json";
import type { Vault } from "@millwright/vault";
import type { RespondOnce, IdempotencyKey } from "../rest/index.ts";
import type { IdentityOperations, Tx } from "../identity/index.ts";

const RETENTION_MS = 24 * 60 * 60 * 1000;

/** Returns the store of responses, which are encrypted because they may contain a new key. */
export const openResponses = (vault: Vault): IdempotencyStore =>
  new IdempotencyStore({ vault, retentionMs: RETENTION_MS });

/**
 * Executes a create once per Idempotency-Key; without a key, once in a transaction. `create` returns the public body.
 */
export type CreateOnce = <T>(
  caller: Caller,
  idempotency: IdempotencyKey | undefined,
  create: (tx: Tx) => Promise<T>,
) => Promise<T>;

type Deps = { readonly responses: IdempotencyStore; readonly clock: Clock };

/**
 * Returns a CreateOnce that writes the row of the key in the transaction of the create. Errors: idempotency_mismatch
 * (conflict).
 */
export const createOnce =
  ({ responses, clock, transaction }: Deps & Pick<IdentityOperations, "transaction">): CreateOnce =>
  (caller, idempotency, create) =>
    transaction((tx) =>
      responses.once(tx.sql, idempotency && requestOf(caller, idempotency), clock.now(), () => create(tx)),
    );

/** Returns the public body that an earlier request with the same key created. Errors: idempotency_mismatch (conflict). */
export type FindCreated = <T>(caller: Caller, idempotency: IdempotencyKey | undefined) => Promise<T | undefined>;

/**
 * Returns a FindCreated, for creates that check resources of other services before the transaction: these may have been
 * deleted since the first request.
 */
export const findCreated =
  ({ responses, clock, sql }: Deps & { readonly sql: Sql }): FindCreated =>
  async <T>(caller: Caller, idempotency: IdempotencyKey | undefined) =>
    idempotency && responses.find<T>(sql, requestOf(caller, idempotency), clock.now());

/**
 * Returns the equivalent for an operation of another service that is itself idempotent by key and cannot share a
 * transaction with the row. Concurrent repetitions each call that service, and all return the response that was stored
 * first.
 */
export const respondOnce =
  ({ responses, clock, sql }: Deps & { readonly sql: Sql }): RespondOnce =>
  (caller, idempotency, act) =>
    responses.respondFirst(sql, requestOf(caller, idempotency), clock.now(), act);

const requestOf = (caller: Caller, { operation, key, bodyHash }: IdempotencyKey): IdempotentRequest => ({
  principalUid: `${caller.principal.type}:${caller.principal.uid}`,
  operation: `${operation} ${rightsOf(caller)}`,
  key,
  bodyHash,
});

/** Returns a hash of the caller's rights: a stored response is only returned to a caller with the same rights. */
const rightsOf = ({ teams, personal, activeTeamUid, platformAdmin, run }: Caller): string =>
  createHash("sha256")
    .update(canonicalJson({ teams, personal, activeTeamUid, platformAdmin, run: run?.runUid }))
    .digest("base64url");
