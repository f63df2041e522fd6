/** Messages of `pg` and Prisma about a connection that PostgreSQL has terminated. */
const LOST_DATABASE =
  /57P01|Connection terminated|is not queryable|EPIPE|ECONNRESET|P1017|P2028|terminating connection/;

/**
 * Returns the logged failures that were not caused by terminated database connections, in the service itself or,
 * through the same request or trace id, in its caller.
 */
export function faultsIn(lines: readonly string[]): string[] {
  const excused = new Set(lines.filter((line) => LOST_DATABASE.test(line)).flatMap(idsOf));
  return lines.filter((line) => !LOST_DATABASE.test(line) && !idsOf(line).some((id) => excused.has(id)));
}

const idsOf = (line: string): string[] => [...line.matchAll(/"(?:requestId|traceId)":"([^"]+)"/g)].map(([, id]) => id!);
