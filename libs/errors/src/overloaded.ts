import { DomainError } from "./domain-error.ts";

/** PostgreSQL: statement timeout, lock not available. Prisma: no connection in time, no transaction in time. */
const CODES: ReadonlySet<unknown> = new Set(["57014", "55P03", "P2024", "P2028"]);
const DEPTH_MAX = 4;
const RETRY_AFTER_SECONDS = 2;

/** Returns whether a database did not complete a statement in time, as PostgreSQL or Prisma reports it. */
export function isOverloaded(error: unknown, depth = 0): boolean {
  if (typeof error !== "object" || error === null || depth > DEPTH_MAX) return false;
  const { code, originalCode, cause, meta, driverAdapterError } = error as Record<string, unknown>;
  return (
    CODES.has(code) ||
    CODES.has(originalCode) ||
    [cause, meta, driverAdapterError].some((inner) => isOverloaded(inner, depth + 1))
  );
}

/** Returns the error of a request that a busy database did not complete. */
export const databaseBusy = (cause: unknown): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "database_busy",
    message: "The platform's database is overloaded and did not respond in time. Retry in a few seconds.",
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
