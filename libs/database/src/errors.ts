/** Whether a unique constraint was violated, as PostgreSQL or Prisma reports it. */
export function isUniqueViolation(error: unknown): boolean {
  const { code, meta } = (error ?? {}) as { code?: string; meta?: { code?: string; driverAdapterError?: { cause?: { originalCode?: string } } } };
  return code === "23505" || code === "P2002" || (code === "P2010" && (meta?.code === "23505" || meta?.driverAdapterError?.cause?.originalCode === "23505"));
}

const TRANSIENT_CODES = new Set([
  ...["40001", "40P01", "55P03"], // serialization failure, deadlock, lock not available
  ...["57P01", "57P02", "57P03", "53300"], // shutting down, crashed, starting, too many connections
  ...["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN"],
]);

/** What the driver says, without a code, when its connection is gone or none is to be had. */
const LOST_CONNECTION = /^Connection terminated|is not queryable$|^timeout exceeded when trying to connect/;

/** Whether the same work may succeed when tried again: the connection or a lock failed, not the statement. */
export function isTransient(error: unknown): boolean {
  const { code = "", message = "" } = (error ?? {}) as { code?: string; message?: string };
  return TRANSIENT_CODES.has(code) || code.startsWith("08") || LOST_CONNECTION.test(message);
}
