import type { Attachment } from "./message.ts";
import type { FrozenConfig } from "./resolved-run.ts";
import type { Actor } from "./run-change.ts";
import type { Run } from "./run.ts";

type Kept =
  | (
      | "uid"
      | "rootRunUid"
      | "parentRunUid"
      | "retryOfRunUid"
      | "depth"
      | "owner"
      | "executorUid"
      | "factoryUid"
      | "conversationUid"
    )
  | (
      | "title"
      | "prompt"
      | "submittedPrompt"
      | "mode"
      | "interactive"
      | "source"
      | "origin"
      | "executionLocation"
      | "agentConfig"
      | "agentSkill"
      | "metadata"
      | "schedule"
      | "triggerUrl"
    );

/** A run about to be inserted. */
export type RunRecord = Pick<Run, Kept> & {
  readonly creator: Actor;
  /** Whether somebody gave the title; one made of the prompt stays out of events. */
  readonly isTitleGiven: boolean;
  readonly frozen: FrozenConfig;
  readonly causeKey?: string;
  /** The first thing the agent is told; absent for a run without a prompt and files. */
  readonly message?: { readonly uid: string; readonly text: string; readonly attachments: readonly Attachment[] };
};
