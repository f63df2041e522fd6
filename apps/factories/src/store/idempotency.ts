import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { IdempotencyStore, type IdempotentRequest } from "@millwright/idempotency";

/** Responses to requests with an idempotency key. */
export const responses = new IdempotencyStore();

/** Returns the queries of responses outside a transaction. Errors: idempotency_mismatch. */
export const responseStore = (sql: Sql, clock: Clock) => ({
  /** Stores a response unless one is stored, and returns the stored one. */
  storeFirst: <T>(request: IdempotentRequest, response: T): Promise<T> =>
    responses.storeFirst(sql, request, clock.now(), response),

  /** Returns the stored response to the request, or undefined. */
  find: <T>(request: IdempotentRequest): Promise<T | undefined> => responses.find<T>(sql, request, clock.now()),
});

export type ResponseStore = ReturnType<typeof responseStore>;
