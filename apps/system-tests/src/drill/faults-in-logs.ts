/** What is written when a connection to PostgreSQL was ended by somebody else, as `pg` and Prisma say it. */
const LOST_DATABASE =
  /57P01|Connection terminated|is not queryable|EPIPE|ECONNRESET|P1017|P2028|terminating connection/;

/** The failures that were told in logs, without those that come of ended database connections, in the service or in one that asked it. */
export function faultsIn(lines: readonly string[]): string[] {
  const excused = new Set(lines.filter((line) => LOST_DATABASE.test(line)).flatMap(idsOf));
  return lines.filter((line) => !LOST_DATABASE.test(line) && !idsOf(line).some((id) => excused.has(id)));
}

const idsOf = (line: string): string[] => [...line.matchAll(/"(?:requestId|traceId)":"([^"]+)"/g)].map(([, id]) => id!);
