/** The part of a logger that `bestEffort` needs. */
export type WarnLog = { warn(fields: { operation: string; error: unknown }, message: string): void };

/** Runs an optional operation: logs its failure under a name and continues. */
export async function bestEffort(what: string, log: WarnLog, act: () => unknown): Promise<void> {
  try {
    await act();
  } catch (error) {
    log.warn({ operation: what, error }, "best effort failed");
  }
}
