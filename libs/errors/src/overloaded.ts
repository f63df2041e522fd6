import { DomainError } from "./domain-error.ts";
import { hasErrorCode } from "./error-codes.ts";

/** PostgreSQL: statement timeout, lock not available. Prisma: no connection in time, no transaction in time. */
const CODES: ReadonlySet<unknown> = new Set(["57014", "55P03", "P2024", "P2028"]);
const RETRY_AFTER_SECONDS = 2;

/** Returns whether a database did not complete a statement in time, as PostgreSQL or Prisma reports it. */
export const isOverloaded = (error: unknown): boolean => hasErrorCode(error, CODES);

/** Returns the error of a request that a busy database did not complete. */
export const databaseBusy = (cause: unknown): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "database_busy",
    message: "The platform's database is overloaded and did not respond in time. Retry in a few seconds.",
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    cause,
  });
