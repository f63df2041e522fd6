import type { Clock } from "@millwright/clock";
import type { Sql } from "@millwright/database";
import { IdempotencyStore, type IdempotentRequest } from "@millwright/idempotency";

/** Responses to requests with an idempotency key. */
export const responses = new IdempotencyStore();

/** Returns the queries of responses outside a transaction. Errors: idempotency_mismatch. */
export const responseStore = (sql: Sql, clock: Clock) => ({
  /** Returns the stored response; if there is none, that of `act`, which is stored. Without a request, calls `act`. */
  respondFirst: <T>(request: IdempotentRequest | undefined, act: () => Promise<T>): Promise<T> =>
    responses.respondFirst(sql, request, clock.now(), act),

  /** Returns the stored response to the request, or undefined. */
  find: <T>(request: IdempotentRequest): Promise<T | undefined> => responses.find<T>(sql, request, clock.now()),
});

export type ResponseStore = ReturnType<typeof responseStore>;
