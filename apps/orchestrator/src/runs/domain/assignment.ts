import type { Directive } from "./directive.ts";
import type { Attachment, Message } from "./message.ts";
import type { AssignmentDetails, FrozenConfig } from "./resolved-run.ts";
import type { RunRef } from "./run-token.ts";
import type { RunMode } from "./run.ts";

/** The immutable parts of an execution's run. */
export type Job = {
  readonly run: RunRef;
  readonly title: string;
  readonly mode: RunMode;
  readonly interactive: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly frozen: FrozenConfig;
  /** True if a budget covers the run. */
  readonly isBudgeted: boolean;
  /** W3C trace context of the request that queued the execution; "" = unknown. */
  readonly traceparent: string;
};

/** A message as sent to a worker, with signed URLs of its files. */
export type Input = Omit<Message, "attachments"> & {
  readonly attachments: readonly (Attachment & { readonly downloadUrl: string })[];
};

/** Everything a worker needs to execute a run. It contains secrets: never stored, never logged. */
export type Assignment = {
  readonly executionId: number;
  readonly attempt: number;
  readonly job: Job;
  readonly details: AssignmentDetails;
  readonly runToken: string;
  readonly leaseExpiresAt: Date;
  readonly executionSeq: number;
  /** Messages that the agent has not received yet, oldest first. */
  readonly inputs: readonly Input[];
  /** Files of messages that were already delivered to an agent, in this run or an earlier one of its conversation. */
  readonly earlierAttachments: Input["attachments"];
  /** Interrupts that were sent to a lost attempt and not acknowledged. */
  readonly directives: readonly Directive[];
  /** Blob key of the workspace to restore; "" = none. */
  readonly snapshotKey: string;
  /** Signed URL of the workspace to restore; "" = start from fresh clones. */
  readonly snapshotUrl: string;
  /** True if an earlier attempt of this execution was lost. */
  readonly isRestarted: boolean;
};

/** Maximum number of steps of an agent in one execution. */
export const STEP_LIMIT = 200;
