import { createHash } from "node:crypto";
import { DomainError } from "@millwright/errors";
import { canonicalJson } from "@millwright/json";

/** A client's promise that it sends one request, however often it arrives (architecture §5). */
export type IdempotentRequest = { principalUid: string; operation: string; key: string; bodyHash: string };

/** Undefined without a key: every request is then its own. */
export const idempotentRequest = (
  principalUid: string,
  operation: string,
  key: string,
  body: unknown,
): IdempotentRequest | undefined =>
  key === ""
    ? undefined
    : { principalUid, operation, key, bodyHash: createHash("sha256").update(canonicalJson(body)).digest("hex") };

export const idempotencyMismatch = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "idempotency_mismatch",
    message: "This Idempotency-Key came with another request before.",
  });
