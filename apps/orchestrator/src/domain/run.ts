import type { JsonObject } from "@millwright/json";
export type { JsonObject, JsonValue } from "@millwright/json";
import type { AgentUid, ConversationUid, EnvironmentUid, FactoryUid, RunUid } from "@millwright/ids";

/** Where a run is in its life (fields-runs §3.1). */
export const RUN_STATES = [
  "QUEUED",
  "PENDING",
  "CLAIMED",
  "INPROGRESS",
  "SUCCEEDED",
  "FAILED",
  "BLOCKED",
  "ERROR",
  "CANCELLED",
] as const;
export type RunState = (typeof RUN_STATES)[number];

/** A run in one of these has ended; a follow-up may queue it again. BLOCKED counts, though it waits for an answer. */
export const TERMINAL_STATES = [
  "SUCCEEDED",
  "FAILED",
  "BLOCKED",
  "ERROR",
  "CANCELLED",
] as const satisfies readonly RunState[];
export type TerminalState = (typeof TERMINAL_STATES)[number];

export const isTerminal = (state: RunState): state is TerminalState =>
  (TERMINAL_STATES as readonly RunState[]).includes(state);

/**
 * One sandbox session of a run. STOPPING: told to stop, tail events still land. DEBUG: its setup
 * failed, and its run with it; its worker keeps workspace and shell for a window, for people to look into them.
 */
export type ExecutionState = "QUEUED" | "OFFERED" | "CLAIMED" | "RUNNING" | "STOPPING" | "DEBUG" | "ENDED";

/** How an execution ended. WAITING: it parked until child runs end. */
export type Outcome = "DONE" | "FAILED" | "BLOCKED" | "WAITING" | "CANCELLED" | "ERROR";

export type RunMode = "normal" | "plan" | "orchestrate";

/** Who owns a run: a team, or one user (a personal run). */
export type Owner = { readonly type: "team" | "user"; readonly uid: string };

/** Why a run is in its state, as shown (fields-runs §6.3 RunStatusMessage). */
export type RunStatus = { readonly message: string; readonly errorCode?: string; readonly retryable?: boolean };

/** Of a run's status message, in characters; the run's conversation has the whole text. */
export const STATUS_MESSAGE_MAX = 8_192;
const CUT = "\n… (cut; the conversation has the whole text)";

/** Returns a text as a status message may hold it: cut at its end if it is too long. */
export function statusMessage(text: string): string {
  if (text.length <= STATUS_MESSAGE_MAX) return text;
  return text.slice(0, STATUS_MESSAGE_MAX - CUT.length).replace(/[\uD800-\uDBFF]$/, "") + CUT;
}

/** The tree a run may have: a root is at depth 0. */
export const DEPTH_MAX = 10;

/** A run as stored; fields-runs §6.3 says what each public field means. */
export type Run = {
  readonly uid: RunUid;
  readonly rootRunUid: RunUid;
  readonly parentRunUid?: RunUid;
  /** The run that this one does again. */
  readonly retryOfRunUid?: RunUid;
  readonly depth: number;
  readonly owner: Owner;
  readonly creatorType: string;
  readonly creatorUid: string;
  readonly executorUid: string;
  readonly agentUid?: AgentUid;
  readonly agentName?: string;
  readonly factoryUid?: FactoryUid;
  readonly definitionVersion?: number;
  readonly environmentUid?: EnvironmentUid;
  readonly title: string;
  readonly state: RunState;
  readonly status?: RunStatus;
  readonly prompt: string;
  readonly submittedPrompt?: string;
  /** Both prompts are only their beginnings, as lists read them. */
  readonly isPromptTruncated?: true;
  readonly mode: RunMode;
  readonly interactive: boolean;
  readonly source: string;
  readonly origin?: string;
  readonly executionLocation: "REMOTE" | "LOCAL";
  readonly conversationUid: ConversationUid;
  readonly sessionUid?: string;
  readonly triggerUrl?: string;
  readonly schedule?: JsonObject;
  readonly agentConfig: JsonObject;
  readonly agentSkill?: JsonObject;
  readonly metadata: Readonly<Record<string, string>>;
  /** Milliseconds of all executions, the present one included. */
  readonly runTimeMs: number;
  readonly isSandboxRunning: boolean;
  /** Its setup failed, and a worker keeps what it left; open for follow-ups until then. Active: an agent works in it. */
  readonly debugWindow?: { readonly until: Date; readonly isActive: boolean };
  /** Whether it left anything behind, committed or not. */
  readonly hasArtifacts: boolean;
  readonly hasUsage: boolean;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt?: Date;
  readonly finishedAt?: Date;
};

/** What drives the agent; "oz" is the platform's own harness. */
export function harnessOf({ agentConfig }: Pick<Run, "agentConfig">): string {
  const harness = agentConfig["harness"];
  const type = typeof harness === "object" && harness !== null && !Array.isArray(harness) ? harness["type"] : undefined;
  return typeof type === "string" ? type : "oz";
}

/** Local runs are executed by their client and cannot be stopped from here (fields-runs §6.3). */
export const isRunTypeCancellable = (run: Pick<Run, "executionLocation">): boolean =>
  run.executionLocation === "REMOTE";
