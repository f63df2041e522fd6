import type { AgentUid } from "@millwright/ids";
import type { Run } from "./run.ts";
import type { ModelUsage } from "./usage.ts";

/** A run with what decides whether and how it is scored. */
export type ScoredRun = {
  readonly run: Run;
  /** Agents of the runs above it, nearest first. */
  readonly ancestorAgentUids: readonly AgentUid[];
  /** An agent has written at least one step of it. */
  readonly hasConversation: boolean;
  /** An ended execution left a workspace: stored, or as its clones were. */
  readonly hasWorkspace: boolean;
  readonly usage: readonly ModelUsage[];
};

/** Cost and tokens of all model calls. Calls without a price or a count add nothing. */
export const totalsOf = (usage: readonly ModelUsage[]): { readonly costMicros: bigint; readonly tokens: number } => ({
  costMicros: usage.reduce((sum, { costMicros }) => sum + costMicros, 0n),
  tokens: usage.reduce(
    (sum, { input, output, cacheRead, cacheWrite }) => sum + input + output + cacheRead + cacheWrite,
    0,
  ),
});
