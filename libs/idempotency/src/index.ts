export { idempotencyMismatch, idempotentRequest, type IdempotentRequest } from "./idempotent-request.ts";
export { rememberAnswer } from "./remember-answer.ts";
