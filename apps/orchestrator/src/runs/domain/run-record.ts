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

/** A run that is about to be inserted. */
export type RunRecord = Pick<Run, Kept> & {
  readonly creator: Actor;
  /** True if the request contained the title. A title generated from the prompt is left out of events. */
  readonly isTitleGiven: boolean;
  readonly frozen: FrozenConfig;
  readonly causeKey?: string;
  /** The first message to the agent; absent: the run has neither a prompt nor files. */
  readonly message?: { readonly uid: string; readonly text: string; readonly attachments: readonly Attachment[] };
};
