import { createHash } from "node:crypto";
import { DomainError } from "@millwright/errors";
import { canonicalJson } from "@millwright/json";

/** Identifies a client's request, which may arrive several times. */
export type IdempotentRequest = {
  readonly principalUid: string;
  readonly operation: string;
  readonly key: string;
  /** Text that PostgreSQL converts to the type of the column `body_hash`. */
  readonly bodyHash: string;
};

/** Returns undefined without a key: then every request is distinct. */
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
    message: "This Idempotency-Key was already used with a different request. Use a new key for a new request.",
  });
