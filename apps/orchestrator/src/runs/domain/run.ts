import type { JsonObject } from "@millwright/json";
export type { JsonObject, JsonValue } from "@millwright/json";
import type { Owner } from "@millwright/caller";
import type { AgentUid, ConversationUid, EnvironmentUid, FactoryUid, RunUid } from "@millwright/ids";

/** The states of a run; see docs/run-life-cycle.md. */
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

/**
 * The states of an ended run. A follow-up may queue the run again. BLOCKED is one of them, although the run waits for
 * an answer.
 */
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
 * The states of an execution, which is one sandbox session of a run. STOPPING: its worker must stop it; its last events
 * are still accepted. DEBUG: its setup failed, and with it the run; its worker retains workspace and shell for the
 * debug window, so that users can inspect them.
 */
export type ExecutionState = "QUEUED" | "OFFERED" | "CLAIMED" | "RUNNING" | "STOPPING" | "DEBUG" | "ENDED";

/** The outcome of an execution. WAITING: the run waits until child runs end. */
export type Outcome = "DONE" | "FAILED" | "BLOCKED" | "WAITING" | "CANCELLED" | "ERROR";

export type RunMode = "normal" | "plan" | "orchestrate";

/** The owner of a run: a team, or one user (a personal run). */
export type { Owner };

/** The reason for a run's state, as published (RunStatusMessage). */
export type RunStatus = { readonly message: string; readonly errorCode?: string; readonly retryable?: boolean };

/** Maximum length of a run's status message, in characters. The run's conversation contains the whole text. */
export const STATUS_MESSAGE_MAX = 8_192;
const CUT = "\n… (cut; the conversation has the whole text)";

/** Returns a text as a status message; its end is cut if it is too long. */
export function statusMessage(text: string): string {
  if (text.length <= STATUS_MESSAGE_MAX) return text;
  return text.slice(0, STATUS_MESSAGE_MAX - CUT.length).replace(/[\uD800-\uDBFF]$/, "") + CUT;
}

/** Maximum depth of a run in its tree; the root has depth 0. */
export const DEPTH_MAX = 10;

/** A run as stored. */
export type Run = {
  readonly uid: RunUid;
  readonly rootRunUid: RunUid;
  readonly parentRunUid?: RunUid;
  /** The run that this run retries. */
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
  /** True if both prompts contain only their beginnings, as in lists. */
  readonly isPromptTruncated?: true;
  readonly mode: RunMode;
  readonly interactive: boolean;
  readonly source: string;
  readonly origin?: string;
  readonly causeKey?: string;
  readonly executionLocation: "REMOTE" | "LOCAL";
  readonly conversationUid: ConversationUid;
  readonly sessionUid?: string;
  readonly triggerUrl?: string;
  readonly schedule?: JsonObject;
  readonly agentConfig: JsonObject;
  readonly agentSkill?: JsonObject;
  readonly metadata: Readonly<Record<string, string>>;
  /** Run time of all executions, including the current one, in milliseconds. */
  readonly runTimeMs: number;
  readonly isSandboxRunning: boolean;
  /**
   * Set while a worker retains the workspace of the failed setup; follow-ups are accepted until then. `isActive`: an
   * agent is working in it.
   */
  readonly debugWindow?: { readonly until: Date; readonly isActive: boolean };
  /** True if it has artifacts, including uploads that are not committed. */
  readonly hasArtifacts: boolean;
  readonly hasUsage: boolean;
  readonly version: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly startedAt?: Date;
  readonly finishedAt?: Date;
};

/** Returns the harness of the agent; "oz" is the platform's built-in harness. */
export function harnessOf({ agentConfig }: Pick<Run, "agentConfig">): string {
  const harness = agentConfig["harness"];
  const type = typeof harness === "object" && harness !== null && !Array.isArray(harness) ? harness["type"] : undefined;
  return typeof type === "string" ? type : "oz";
}

/** Returns whether the run can be cancelled. Local runs cannot, because their client executes them. */
export const isRunTypeCancellable = (run: Pick<Run, "executionLocation">): boolean =>
  run.executionLocation === "REMOTE";
