import { DomainError } from "./domain-error.ts";

const CODES = new Set([
  ...["57P01", "57P02", "57P03", "53300"], // PostgreSQL: shutting down, crashed, starting, too many connections
  ...["P1001", "P1017"], // Prisma: not reachable, closed by the server
  ...["ECONNREFUSED", "ECONNRESET", "EPIPE", "ETIMEDOUT"],
]);

/**
 * Messages of drivers, and of Node.js for a Unix socket, for a lost or unavailable connection. Their codes are absent or
 * mean something else for a file.
 */
const TEXT =
  /Connection terminated|connect (?:ENOENT|EAGAIN) |is not queryable$|^timeout exceeded when trying to connect|terminating connection due to administrator command/;

/** Returns whether a connection failed, mostly that of a database, rather than the statement. */
export function isLostConnection(error: unknown): boolean {
  const { code, message = "", meta } = (error ?? {}) as { code?: unknown; message?: string; meta?: { code?: unknown } };
  return (
    [code, meta?.code].some((one) => typeof one === "string" && (CODES.has(one) || one.startsWith("08"))) ||
    TEXT.test(message)
  );
}

/** Returns the error for an unreachable dependency. */
export const serviceUnavailable = (cause: unknown): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "service_unavailable",
    message: "A service of the platform is not reachable. Retry in a few seconds.",
    cause,
  });
