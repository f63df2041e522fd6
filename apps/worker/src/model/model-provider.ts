import type { JsonObject } from "@bufbuild/protobuf";
import type { TokenCounts } from "../executions/execution-context.ts";

/** An event of the run as a model sees it: what was said, asked and done before. Payloads as in the run's events. */
export type ConversationEvent = { readonly kind: string; readonly payload: JsonObject };

/** A tool as a model may call it. */
export type ToolDescription = { readonly name: string; readonly description: string; readonly inputSchema: JsonObject };

/** Everything a model's next step may depend on. Made from the run's events and its workspace alone. */
export type ModelContext = {
  /** Platform's and agent's instructions. */
  readonly basePrompt: string;
  readonly agentPrompt: string;
  readonly modelId: string;
  /** Of this run, oldest first. */
  readonly events: readonly ConversationEvent[];
  /** What was said and done in earlier runs of the conversation. */
  readonly earlier: readonly ConversationEvent[];
  /** Those the present mode allows. */
  readonly tools: readonly ToolDescription[];
  /** normal, plan or orchestrate. */
  readonly mode: string;
  /** Each step shall call a tool: text alone says nothing to the platform. */
  readonly mustCallTool?: boolean;
  /** Where the agent's shell begins. */
  readonly directory: string;
  /** What the repositories say to agents. */
  readonly rules: readonly Rule[];
  /** Procedures that the agent can read. */
  readonly skills: readonly { readonly name: string; readonly description: string }[];
  /** What it has to know about its surroundings besides. */
  readonly notices: readonly string[];
};

/** A file in which a repository tells agents how to work in it. */
export type Rule = { readonly path: string; readonly text: string };

export type ToolCall = {
  /** Unique in the run: outside effects are keyed by it. Of a script the same in every attempt, of an AI new in each. */
  readonly callId: string;
  readonly name: string;
  readonly input: JsonObject;
  /** What the model sent as arguments where that is no JSON object; the call is answered with an error then. */
  readonly malformed?: string;
};

/** Why a run fails by the agent's or its author's fault. `code` is of the public catalog. */
export type RunFailure = {
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly reason: string;
};

/** One answer of a model. */
export type ModelStep = {
  /** Unique in the run; also the key of the call's usage. */
  readonly stepId: string;
  readonly text: string;
  readonly toolCalls: readonly ToolCall[];
  /** Absent: no call was answered, so there is none to count. */
  readonly usage?: TokenCounts;
  /** What comes after the tools have run. */
  readonly next:
    | { readonly kind: "go_on" }
    | { readonly kind: "done" }
    | { readonly kind: "failed"; readonly failure: RunFailure }
    | { readonly kind: "blocked"; readonly message: string };
};

/** A model's account of the beginning of a conversation that is too long for it: it reads this from now on, and everything from `keptFrom` (a step or a message) on. */
export type Summary = {
  readonly kind: "summary";
  readonly callId: string;
  readonly text: string;
  readonly keptFrom: string;
  readonly usage?: TokenCounts;
};

/** A source of steps; adapters of AI providers and the built-in `scripted` alike. */
export interface ModelProvider {
  readonly name: string;
  /** Its steps take a while. */
  readonly isSlow: boolean;
  /**
   * The next step; undefined when the agent has nothing more to do. A summary: it is to be recorded, then the step is asked for again. A wire that fails for
   * good is a failed step. Errors: the reason of `signal`.
   */
  step(context: ModelContext, signal: AbortSignal): Promise<ModelStep | Summary | undefined>;
}

/** The code of a failure that the agent itself reports, or that its own tools showed. */
export const AGENT_FAILED = "agent_reported_failure";
