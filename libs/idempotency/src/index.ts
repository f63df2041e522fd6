export { idempotencyMismatch, idempotentRequest, type IdempotentRequest } from "./idempotent-request.ts";
export { rememberAnswer, rememberedAnswer } from "./remember-answer.ts";
