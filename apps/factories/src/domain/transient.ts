import type { DomainError } from "@millwright/errors";

const TRANSIENT: ReadonlySet<string> = new Set(["unavailable", "internal", "rate_limited"]);

/** Returns whether the same request may succeed later. */
export const isTransientError = ({ kind, retryable }: Pick<DomainError, "kind" | "retryable">): boolean =>
  retryable || TRANSIENT.has(kind);
