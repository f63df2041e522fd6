import { openAgentEgress } from "./agent-egress.ts";
import type { ExecutionContext, ExecutionResult } from "../context/execution-context.ts";
import { literalSecrets } from "../mcp/server-settings.ts";
import { limitsFor } from "../sandbox/limits.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { hostOf } from "../sandbox/spec.ts";
import { startWorkspaceSandbox, type WorkspaceOptions } from "../sandbox/start-sandbox.ts";
import type { Conversation } from "../conversation/conversation.ts";

/**
 * Starts the sandbox that the agent works in, with the limits and the image of its run, and records this in the run's
 * events. Throws the errors of the start.
 */
export async function startAgentSandbox(
  ctx: ExecutionContext,
  conversation: Conversation,
  env: Readonly<Record<string, string>>,
  more: Pick<WorkspaceOptions, "relays" | "shown"> = {},
): Promise<Sandbox> {
  const host = hostOf(ctx.sandbox);
  const { instanceShape, dockerImage } = ctx.assignment;
  const limits = limitsFor(host.limits, instanceShape);
  const rootfs = host.rootfs?.get(dockerImage);
  const egress = host.kind === "bwrap" ? await openAgentEgress(ctx, host) : undefined;
  const options = {
    limits,
    relays: [...(egress?.relays ?? []), ...(more.relays ?? [])],
    shown: more.shown ?? [],
    secrets: [...Object.values(ctx.assignment.secrets), ...literalSecrets(ctx.assignment.mcpServers)],
    rootfs,
  };
  const sandbox = await startWorkspaceSandbox(host, ctx.dir, { ...env, ...egress?.env }, options).catch(
    (error: unknown) => {
      egress?.close();
      throw error;
    },
  );
  ctx.ownSandbox(sandbox);
  void sandbox.gone.then(() => egress?.close());
  conversation.record("sandbox_ready", {
    kind: sandbox.kind,
    limits: {
      memory_bytes: limits.memoryBytes,
      processes: limits.processes,
      cpus: limits.cpus,
      file_bytes: limits.fileBytes,
      disk_bytes: limits.diskBytes,
      enforced_by: host.cgroups ? `cgroup-${host.cgroups.version}` : "prlimit",
    },
  });
  if (dockerImage !== "" && rootfs === undefined && dockerImage !== host.ownImage)
    conversation.record("image_substituted", { image: dockerImage });
  return sandbox;
}

/**
 * Returns the result of an execution whose sandbox ended while it was running: an exceeded limit is the run's own
 * failure, anything else is an error of this machine.
 */
export function sandboxEndResult({ breach }: Sandbox, conversation: Conversation): ExecutionResult {
  if (!breach) {
    const message = "The sandbox ended while the agent was working in it.";
    return {
      outcome: "ERROR",
      error: { code: "agent_process_failed", message, retryable: false, reason: "sandbox_died" },
    };
  }
  const { reason, resource, limit, by, message } = breach;
  conversation.record("limit_exceeded", { reason, resource, limit, by });
  return { outcome: "FAILED", error: { code: reason, message, retryable: false, reason } };
}
