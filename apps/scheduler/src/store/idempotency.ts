import { IdempotencyStore } from "@millwright/idempotency";

/** Responses to requests with an idempotency key. */
export const responses = new IdempotencyStore();
