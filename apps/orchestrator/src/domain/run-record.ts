import type { ConversationUid, RunUid } from "@millwright/ids";
import type { Attachment } from "./message.ts";
import type { FrozenConfig } from "./resolved-run.ts";
import type { Actor } from "./run-change.ts";
import type { JsonObject, Owner, RunMode } from "./run.ts";

/** A run about to be inserted. */
export type RunRecord = {
  readonly uid: RunUid;
  readonly rootRunUid: RunUid;
  readonly parentRunUid?: RunUid;
  readonly depth: number;
  readonly owner: Owner;
  readonly creator: Actor;
  readonly executorUid: string;
  readonly title: string;
  /** Whether somebody gave the title; one made of the prompt stays out of events. */
  readonly isTitleGiven: boolean;
  readonly prompt: string;
  readonly submittedPrompt?: string;
  readonly mode: RunMode;
  readonly interactive: boolean;
  readonly source: string;
  readonly origin?: string;
  readonly conversationUid: ConversationUid;
  readonly agentConfig: JsonObject;
  readonly agentSkill?: JsonObject;
  readonly frozen: FrozenConfig;
  readonly factoryUid?: string;
  readonly metadata: Readonly<Record<string, string>>;
  readonly causeKey?: string;
  /** The first thing the agent is told; absent for a run without a prompt and files. */
  readonly message?: { readonly uid: string; readonly text: string; readonly attachments: readonly Attachment[] };
};
