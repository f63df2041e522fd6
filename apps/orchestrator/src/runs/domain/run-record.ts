import type { Attachment } from "./message.ts";
import type { FrozenConfig } from "./resolved-run.ts";
import type { Owner, Run } from "./run.ts";

/** Members of a run that have no value or a default at creation, or that other tables determine. */
type Later =
  | "state"
  | "status"
  | "sessionUid"
  | "version"
  | "createdAt"
  | "updatedAt"
  | "startedAt"
  | "finishedAt"
  | "runTimeMs"
  | "isPromptTruncated"
  | "isSandboxRunning"
  | "debugWindow"
  | "hasArtifacts"
  | "hasUsage";

/** A run that is about to be inserted. */
export type RunRecord = Omit<Run, Later> & {
  /** True if the request contained the title. A title generated from the prompt is left out of events. */
  readonly isTitleGiven: boolean;
  readonly frozen: FrozenConfig;
  /** The first message to the agent; absent: the run has neither a prompt nor files. */
  readonly message?: { readonly uid: string; readonly text: string; readonly attachments: readonly Attachment[] };
};

/** A request for which its owner gets one run, without a time limit. */
export type Cause = { readonly ownerUid: string; readonly causeKey: string };

/** The owner, agent and factory whose capacity an execution uses. */
export type CapacitySubject = {
  readonly owner: Owner;
  readonly agentUid?: string | undefined;
  readonly factoryUid?: string | undefined;
};
