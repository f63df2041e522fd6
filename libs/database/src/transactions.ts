import { isConflict } from "./errors.ts";

/** How long a transaction waits for a free connection: as long as its caller may wait for an answer. */
export const CONNECTION_WAIT_MS = 30_000;

/**
 * How long Prisma's interactive transactions wait for a connection, and may last. Its own bounds of two and five seconds end
 * healthy transactions of a busy machine; whoever asked gives up by a deadline of its own.
 */
export const PRISMA_TRANSACTION = { maxWait: CONNECTION_WAIT_MS, timeout: 60_000 } as const;

const TRIES_MAX = 5;

/** Makes a transaction again that PostgreSQL has ended in favour of another one, a few times. `attempt` has no effect but the transaction's. */
export async function retryConflicts<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isConflict(error) || tries === TRIES_MAX) throw error;
    }
  }
}
