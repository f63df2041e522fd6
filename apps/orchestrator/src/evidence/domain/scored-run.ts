import type { AgentUid } from "@millwright/ids";
import type { Run } from "../../runs/domain/run.ts";
import type { ModelUsage } from "../../catalog/domain/usage.ts";

/** A run with the data that determines whether and how it is scored. */
export type ScoredRun = {
  readonly run: Run;
  /** Agents of its ancestors, nearest first. */
  readonly ancestorAgentUids: readonly AgentUid[];
  /** True if an agent has written at least one step. */
  readonly hasConversation: boolean;
  /** True if an ended execution left a workspace: a stored snapshot, or the unchanged clones. */
  readonly hasWorkspace: boolean;
  readonly usage: readonly ModelUsage[];
};

/** Returns the cost and the tokens of all model calls. Calls without a price or without counts add nothing. */
export const totalsOf = (usage: readonly ModelUsage[]): { readonly costMicros: bigint; readonly tokens: number } => ({
  costMicros: usage.reduce((sum, { costMicros }) => sum + costMicros, 0n),
  tokens: usage.reduce(
    (sum, { input, output, cacheRead, cacheWrite }) => sum + input + output + cacheRead + cacheWrite,
    0,
  ),
});
