export { idempotencyMismatch, idempotentRequest, type IdempotentRequest } from "./idempotent-request.ts";
export { storeResponse, storedResponse } from "./stored-response.ts";
