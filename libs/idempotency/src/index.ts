export { IdempotencyStore, type IdempotencyStoreOptions } from "./idempotency-store.ts";
export { idempotentRequest, type IdempotentRequest } from "./idempotent-request.ts";
