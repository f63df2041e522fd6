import type { DomainError } from "@millwright/errors";

const PASSING: ReadonlySet<string> = new Set(["unavailable", "internal", "rate_limited"]);

/** Whether the same request may succeed later. */
export const isPassing = ({ kind, retryable }: Pick<DomainError, "kind" | "retryable">): boolean =>
  retryable || PASSING.has(kind);
