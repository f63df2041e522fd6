import { isConflict } from "./errors.ts";

/** How long a transaction waits for a free connection: as long as its caller may wait for a response. */
export const CONNECTION_WAIT_MS = 30_000;

/**
 * How long Prisma's interactive transactions may wait for a connection, and may last. Its defaults of two and five
 * seconds would end healthy transactions of a busy machine; callers have deadlines of their own.
 */
export const PRISMA_TRANSACTION = { maxWait: CONNECTION_WAIT_MS, timeout: 60_000 } as const;

const TRIES_MAX = 5;

/**
 * Retries a transaction a few times that PostgreSQL aborted because of another one. `attempt` must have no effects but
 * the transaction's.
 */
export async function retryConflicts<T>(attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isConflict(error) || tries === TRIES_MAX) throw error;
    }
  }
}
