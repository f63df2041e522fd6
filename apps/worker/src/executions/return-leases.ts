import { bestEffort } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import type { WorkerClient } from "../protocol/client.ts";
import { atMost, type Timers } from "../time/timers.ts";
import { WORKER_STOPPING } from "./execution-outcome.ts";
import type { Executions } from "./executions.ts";

/** How long each step may take: first the end of the sandboxes, then the return of the leases. */
const STEP_MS = 2_000;

export type ReturnLeasesDeps = {
  readonly client: Pick<WorkerClient, "returnLeases">;
  readonly executions: Executions;
  readonly timers: Timers;
  readonly log: Logger;
};

/**
 * Kills all sandboxes and returns the leases of executions without a recorded outcome, so that their next attempts
 * start immediately. Resolves within seconds. Never rejects.
 */
export async function returnLeases(
  { client, executions, timers, log }: ReturnLeasesDeps,
  why: string,
  signal: AbortSignal,
): Promise<void> {
  const { reason, message, isFailure: failure } = WORKER_STOPPING;
  const leases = executions
    .all()
    .filter(({ isReported }) => !isReported)
    .map(({ executionId, attempt }) => ({ executionId, attempt, reason, message, failure }));
  executions.abandonAll(why);
  if (leases.length === 0) return;
  // so that nothing of them runs when another worker continues them
  await atMost(timers, STEP_MS, executions.idle());
  await atMost(
    timers,
    STEP_MS,
    bestEffort("return leases", log, () => client.returnLeases({ leases }, { timeoutMs: STEP_MS, signal })),
  );
}
