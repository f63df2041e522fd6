import type { ExecutionContext } from "../context/execution-context.ts";
import { push } from "../git/push.ts";
import { isToRepeat } from "../model/repeats.ts";
import { hostOf } from "../sandbox/spec.ts";
import type { ToolContext, Workspace } from "../tools/tool.ts";
import { BackgroundCommands } from "../tools/background.ts";
import type { Conversation } from "../conversation/conversation.ts";
import { skillCatalog } from "../workspace/skill-catalog.ts";

/** Returns the context of tools in a workspace. */
export function toolContext(
  ctx: ExecutionContext,
  conversation: Conversation,
  workspace: Workspace,
): Omit<ToolContext, "callId" | "signal"> {
  const { runUid, factoryUid, spawnableAgents, skills } = ctx.assignment;
  return {
    workspace,
    platform: ctx.platform,
    run: { runUid, factoryUid, spawnableAgents },
    skills: skillCatalog(skills, workspace),
    background: new BackgroundCommands(),
    isRepeated: (callId) => conversation.ofExecution.some((event) => isToRepeat(event, callId)),
    record: (kind, payload) => conversation.record(kind, payload),
    push: async (copy, sha) => {
      await ctx.gate.whenOpen();
      await push(copy, sha, {
        host: hostOf(ctx.sandbox),
        agent: workspace.sandbox,
        dir: ctx.dir,
        signal: ctx.signal,
        gate: ctx.gate,
        outbound: ctx.outbound,
        ownSandbox: (second) => ctx.ownSandbox(second),
      });
    },
  };
}
