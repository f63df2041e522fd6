import { isLostConnection, isStorageFull } from "@millwright/errors";

/** Returns the error codes of PostgreSQL and Prisma; Prisma adds PostgreSQL's to its own. */
function codesOf(error: unknown): (string | undefined)[] {
  const { code, meta } = (error ?? {}) as {
    code?: string;
    meta?: { code?: string; driverAdapterError?: { cause?: { originalCode?: string } } };
  };
  return [code, meta?.code, meta?.driverAdapterError?.cause?.originalCode];
}

/** Returns whether a unique constraint was violated, as PostgreSQL or Prisma reports it. */
export const isUniqueViolation = (error: unknown): boolean =>
  codesOf(error).some((code) => code === "23505" || code === "P2002");

/** Returns whether a statement was cancelled because of its timeout. */
export const isCancelled = (error: unknown): boolean => codesOf(error)[0] === "57014";

/** Serialization failure and deadlock, and Prisma's code for both. */
const CONFLICTS = new Set(["40001", "40P01", "P2034"]);

/**
 * Returns whether PostgreSQL aborted a transaction because of another one: it had no effect, and an immediate retry may
 * succeed.
 */
export const isConflict = (error: unknown): boolean =>
  codesOf(error).some((code) => code !== undefined && CONFLICTS.has(code));

const TRANSIENT_CODES = new Set(["55P03", "ENOTFOUND", "EAI_AGAIN"]); // the first: lock not available

/**
 * Returns whether a retry of the same work may succeed: the connection, a lock or the disk failed, not the statement.
 */
export function isTransient(error: unknown): boolean {
  return (
    isConflict(error) || TRANSIENT_CODES.has(codesOf(error)[0] ?? "") || isLostConnection(error) || isStorageFull(error)
  );
}
