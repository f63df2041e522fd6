import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { bestEffort } from "@millwright/errors";
import type { ExecutionContext } from "../context/execution-context.ts";
import { configEnvironment } from "../git/host-git.ts";
import { PROXY_PORT, type Relay, type SandboxHost } from "../sandbox/spec.ts";
import { Denials } from "../egress/denials.ts";
import { EgressProxy } from "../egress/egress-proxy.ts";
import { GitGateway } from "../egress/git-gateway.ts";
import { EgressPolicy, NO_EGRESS } from "../egress/policy.ts";

const ORIGIN = `http://127.0.0.1:${PROXY_PORT}`;
/** The proxy variables of programs, in both spellings. Node.js's own `fetch` requires an additional one. */
const PROXY_ENVIRONMENT: Readonly<Record<string, string>> = {
  ...Object.fromEntries(["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"].map((name) => [name, ORIGIN])),
  ...{ NO_PROXY: "localhost,127.0.0.1,::1", no_proxy: "localhost,127.0.0.1,::1", NODE_USE_ENV_PROXY: "1" },
};

export type AgentEgress = {
  readonly relays: readonly Relay[];
  readonly env: Readonly<Record<string, string>>;
  readonly close: () => void;
};

/**
 * Opens the agent's network access: hosts that both the operator and the run's environment allow, and read access to
 * the run's own repositories. Each denied host becomes an event of the run. Throws file system errors.
 */
export async function openAgentEgress(
  ctx: Pick<ExecutionContext, "assignment" | "dir" | "gate" | "emit" | "log" | "outbound">,
  host: SandboxHost,
): Promise<AgentEgress> {
  const { repositories, egress } = ctx.assignment;
  const git = new GitGateway(repositories, false, ctx.outbound);
  const denials = new Denials(
    (payload) => void bestEffort("report a denied connection", ctx.log, () => ctx.emit("egress_denied", payload)),
  );
  // unique, because an execution may have several consecutive sandboxes
  const directory = join(ctx.dir, `proxy-${randomUUID().slice(0, 8)}`);
  await mkdir(directory, { recursive: true, mode: 0o755 });
  const socket = join(directory, "proxy.sock");
  const policy = new EgressPolicy(host.egress ?? NO_EGRESS, egress?.allowedHosts);
  const proxy = await EgressProxy.listen(socket, {
    policy,
    gate: ctx.gate,
    git,
    onDenied: (denial) => denials.add(denial),
  });
  return {
    relays: [{ port: PROXY_PORT, socket }],
    env: { ...PROXY_ENVIRONMENT, ...configEnvironment(git.settings(ORIGIN)) },
    close: () => proxy.close(),
  };
}
