import { isLostConnection, isStorageFull } from "@millwright/errors";

/** Codes of PostgreSQL and Prisma that an error carries; Prisma keeps PostgreSQL's beside its own. */
function codesOf(error: unknown): (string | undefined)[] {
  const { code, meta } = (error ?? {}) as {
    code?: string;
    meta?: { code?: string; driverAdapterError?: { cause?: { originalCode?: string } } };
  };
  return [code, meta?.code, meta?.driverAdapterError?.cause?.originalCode];
}

/** Whether a unique constraint was violated, as PostgreSQL or Prisma reports it. */
export const isUniqueViolation = (error: unknown): boolean =>
  codesOf(error).some((code) => code === "23505" || code === "P2002");

/** Whether a statement was cancelled because it took too long. */
export const isCancelled = (error: unknown): boolean => codesOf(error)[0] === "57014";

/** Serialization failure and deadlock, and what Prisma calls both. */
const CONFLICTS = new Set(["40001", "40P01", "P2034"]);

/** Whether PostgreSQL has ended a transaction in favour of another one: nothing of it was done, and it may succeed at once. */
export const isConflict = (error: unknown): boolean =>
  codesOf(error).some((code) => code !== undefined && CONFLICTS.has(code));

const TRANSIENT_CODES = new Set(["55P03", "ENOTFOUND", "EAI_AGAIN"]); // the first: lock not available

/** Whether the same work may succeed when tried again: the connection, a lock or the disk failed, not the statement. */
export function isTransient(error: unknown): boolean {
  return (
    isConflict(error) || TRANSIENT_CODES.has(codesOf(error)[0] ?? "") || isLostConnection(error) || isStorageFull(error)
  );
}
