import type { Harness } from "../adapters/harness-turns.ts";
import type { ExecutionContext } from "../context/execution-context.ts";
import type { ModelProvider } from "../model/model-provider.ts";
import type { Conversation } from "../conversation/conversation.ts";
import type { Messages } from "../conversation/messages.ts";
import type { TokenBudget } from "../conversation/token-budget.ts";

/** The agent: the platform's own loop with a model, or a third-party agent program. */
type AgentEngine = { readonly provider: ModelProvider } | { readonly harness: Harness };

export type RunAgentDeps = {
  readonly ctx: ExecutionContext;
  readonly conversation: Conversation;
  readonly messages: Messages;
  readonly budget: TokenBudget;
} & AgentEngine;

/** The dependencies of the platform's own loop. */
export type ModelAgentDeps = Extract<RunAgentDeps, { readonly provider: ModelProvider }>;
