import type { RunChange } from "../domain/run-change.ts";

/**
 * Whether a change ends an attempt that a worker had accepted. An attempt that its client executes uses no sandbox of
 * the platform, so it does not count.
 */
export const endsAttempt = ({ run: { execution }, next }: RunChange): boolean =>
  next.lease === "release" && execution.lease?.isAccepted === true && !execution.isLocal;

/** Whether the ending attempt was dispatched and no machine has taken it over, so that no sandbox ran yet. */
export const isWaitingForMachine = ({ run: { execution } }: RunChange): boolean =>
  execution.lease?.dispatcherUid !== undefined && execution.lease.dispatcherUid === execution.lease.sessionUid;
