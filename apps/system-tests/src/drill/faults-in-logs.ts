/** What is written when a connection to PostgreSQL was ended by somebody else, as `pg` and Prisma say it. */
const LOST_DATABASE = /57P01|Connection terminated|is not queryable|EPIPE|ECONNRESET|P1017|P2028|terminating connection/;

/** The failures that were told in logs, without those of background work whose database connection was ended. */
export const faultsIn = (lines: readonly string[]): string[] => lines.filter((line) => line.includes('"operation"') || !LOST_DATABASE.test(line));
