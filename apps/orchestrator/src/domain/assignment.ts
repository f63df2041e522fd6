import type { Directive } from "./directive.ts";
import type { Attachment, Message } from "./message.ts";
import type { AssignmentDetails, FrozenConfig } from "./resolved-run.ts";
import type { RunRef } from "./run-token.ts";
import type { RunMode } from "./run.ts";

/** What an execution is for: the parts of its run that never change. */
export type Job = {
  readonly run: RunRef;
  readonly title: string;
  readonly mode: RunMode;
  readonly interactive: boolean;
  readonly metadata: Readonly<Record<string, string>>;
  readonly frozen: FrozenConfig;
  /** A budget covers the run. */
  readonly isBudgeted: boolean;
  /** W3C trace context of what queued the execution; "" = not known. */
  readonly traceparent: string;
};

/** A message as a worker gets it: its files by signed URLs. */
export type Input = Omit<Message, "attachments"> & {
  readonly attachments: readonly (Attachment & { readonly downloadUrl: string })[];
};

/** Everything a worker needs to execute a run. Holds secrets: never stored, never logged. */
export type Assignment = {
  readonly executionId: number;
  readonly attempt: number;
  readonly job: Job;
  readonly details: AssignmentDetails;
  readonly runToken: string;
  readonly leaseExpiresAt: Date;
  readonly executionSeq: number;
  /** What the agent is asked now, oldest first. */
  readonly inputs: readonly Input[];
  /** Files of messages that the agent has been handed already, in this run or an earlier one of its conversation. */
  readonly earlierAttachments: Input["attachments"];
  /** What a lost attempt was told and had not taken. */
  readonly directives: readonly Directive[];
  /** Which workspace that is; "" = none. */
  readonly snapshotKey: string;
  /** Signed URL of the workspace to restore; "" = start from fresh clones. */
  readonly snapshotUrl: string;
  /** An earlier attempt of this execution was lost. */
  readonly isRestarted: boolean;
};

/** The most steps an agent takes in one execution. */
export const STEP_LIMIT = 200;
