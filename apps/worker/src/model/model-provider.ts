import type { JsonObject } from "@bufbuild/protobuf";
import type { TokenCounts } from "../context/platform-client.ts";

/**
 * An event of the run as a model reads it: a message, a model step or a tool call. Payloads have the form of the run's
 * events.
 */
export type ConversationEvent = { readonly kind: string; readonly payload: JsonObject };

/** A tool as it is described to a model. */
export type ToolDescription = { readonly name: string; readonly description: string; readonly inputSchema: JsonObject };

/** The complete input of a model's next step. It is derived only from the run's events and its workspace. */
export type ModelContext = {
  /** The instructions of the platform and of the agent. */
  readonly basePrompt: string;
  readonly agentPrompt: string;
  readonly modelId: string;
  /** The events of this run, oldest first. */
  readonly events: readonly ConversationEvent[];
  /** The events of earlier runs of the conversation. */
  readonly earlier: readonly ConversationEvent[];
  /** The tools that the current mode allows. */
  readonly tools: readonly ToolDescription[];
  /** `normal`, `plan` or `orchestrate`. */
  readonly mode: string;
  /** Whether each step must call a tool, because the platform ignores text alone. */
  readonly mustCallTool?: boolean;
  /** The initial directory of the agent's shell. */
  readonly directory: string;
  /** The instructions to agents in the repositories. */
  readonly rules: readonly Rule[];
  /** The skills that the agent can read. */
  readonly skills: readonly { readonly name: string; readonly description: string }[];
  /** Additional information about the environment of the agent. */
  readonly notices: readonly string[];
};

/** A file in which a repository gives instructions to agents. */
export type Rule = { readonly path: string; readonly text: string };

export type ToolCall = {
  /**
   * Unique in the run; side effects are keyed by it. A script uses the same id in every attempt; an AI model's ids
   * differ between attempts.
   */
  readonly callId: string;
  readonly name: string;
  readonly input: JsonObject;
  /** The arguments as the model sent them, if they are not a JSON object. The call then returns an error. */
  readonly malformed?: string;
};

/** Why a run fails because of the agent or its author. `code` is from the public error catalog. */
export type RunFailure = {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly reason: string;
};

/** One response of a model. */
export type ModelStep = {
  /** Unique in the run; also the key of the call's usage. */
  readonly stepId: string;
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  /** Absent: no model call produced this step, so there is no usage. */
  readonly usage?: TokenCounts;
  /** What happens after the tools have run. */
  readonly next:
    | { readonly kind: "continue" }
    | { readonly kind: "done" }
    | { readonly kind: "failed"; readonly failure: RunFailure }
    | { readonly kind: "blocked"; readonly message: string };
};

/**
 * A model's summary of the beginning of a conversation that exceeds its context window. From now on, the model reads
 * the summary and all events from `retainedFrom` (the id of a step or a message) on.
 */
export type Summary = {
  readonly kind: "summary";
  readonly callId: string;
  readonly text: string;
  readonly retainedFrom: string;
  readonly usage?: TokenCounts;
};

/** A source of model steps: an AI provider or the built-in `scripted` provider. */
export interface ModelProvider {
  readonly name: string;
  /** Whether a step takes noticeable time. */
  readonly isSlow: boolean;
  /**
   * Returns the next step, or undefined if the agent has nothing more to do. If it returns a summary, the caller
   * records it and calls again. A provider that fails permanently is returned as a failed step. Throws the reason of
   * `signal`.
   */
  step(context: ModelContext, signal: AbortSignal): Promise<ModelStep | Summary | undefined>;
}

/** The error code of a failure that the agent reports itself or that one of its tools caused. */
export const AGENT_FAILED = "agent_reported_failure";
