import { isLostConnection } from "@millwright/errors";

/** Whether a unique constraint was violated, as PostgreSQL or Prisma reports it. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, meta } = (error ?? {}) as { code?: string; meta?: { code?: string; driverAdapterError?: { cause?: { originalCode?: string } } } };
  return code === "23505" || code === "P2002" || (code === "P2010" && (meta?.code === "23505" || meta?.driverAdapterError?.cause?.originalCode === "23505"));
}

/** Whether a statement was cancelled because it took too long. */
export const isCancelled = (error: unknown): boolean => (error as { code?: unknown } | null)?.code === "57014";

const TRANSIENT_CODES = new Set([
  ...["40001", "40P01", "55P03"], // serialization failure, deadlock, lock not available
  ...["ENOTFOUND", "EAI_AGAIN"],
]);

/** Whether the same work may succeed when tried again: the connection or a lock failed, not the statement. */
export function isTransient(error: unknown): boolean {
  const { code = "" } = (error ?? {}) as { code?: string };
  return TRANSIENT_CODES.has(code) || isLostConnection(error);
}
