import { randomUUID } from "node:crypto";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { worker } from "@millwright/contracts";
import type { OutboundRule } from "@millwright/outbound";
import { EgressProxy } from "../egress/egress-proxy.ts";
import { GitGateway } from "../egress/git-gateway.ts";
import { EgressPolicy, NO_EGRESS } from "../egress/policy.ts";
import type { OutboundGate } from "../egress/outbound-gate.ts";
import type { SandboxHandle } from "../sandbox/sandbox-handle.ts";
import { OutboundGateClosed } from "../egress/outbound-gate.ts";
import { lastLines } from "../sandbox/last-lines.ts";
import { limitsFor } from "../sandbox/limits.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { PROXY_PORT, WORKSPACE, type Mount, type Relay, type SandboxHost } from "../sandbox/spec.ts";
import { startSandbox } from "../sandbox/start-sandbox.ts";
import { configEnvironment, GitFailed, hardening } from "./host-git.ts";
import { isLocal, isSha, localPath, nameOf, type WorkingCopy } from "./repository.ts";

const REMOTE = "/remote.git";
const TIMEOUT_MS = 120_000;
const WATCH_MS = 100;

export type PushOptions = {
  readonly host: SandboxHost;
  /** The sandbox that the agent runs in. */
  readonly agent: Sandbox;
  /** The execution's directory. Its `workspace` contains the agent's clone. */
  readonly dir: string;
  readonly signal: AbortSignal;
  /** Checked before and during the push. A running push is aborted when the gate closes. */
  readonly gate: OutboundGate;
  readonly ownSandbox: (sandbox: SandboxHandle) => void;
  readonly outbound: OutboundRule;
};

/** Thrown if the branch on the code host is not at the last known commit, because another party pushed to it. */
export class BranchMoved extends GitFailed {
  constructor(copy: WorkingCopy) {
    super(
      `Cannot push ${copy.repository.workBranch} of ${nameOf(copy.repository)}`,
      "another client has pushed to the branch",
    );
    this.name = "BranchMoved";
  }
}

/**
 * Pushes one commit to the work branch, from a second, short-lived sandbox. Git runs there in a new, empty repository
 * that only borrows the objects of the agent's repository, so no hook, filter, URL or setting of the agent's repository
 * has an effect. The credential is added outside the sandbox. Force-with-lease rejects the push if the branch is not at
 * the last known commit. The push waits for the outbound gate and is retried if the gate closed while it was running.
 * If the first try has already pushed the commit, the retry does not treat the branch as moved. Throws `BranchMoved`,
 * `GitFailed` or the abort reason.
 */
export async function push(copy: WorkingCopy, sha: string, options: PushOptions): Promise<void> {
  if (!isSha(sha)) throw new GitFailed("Cannot push", "there is no such commit");
  for (let isPushed = false; !isPushed;) {
    await options.gate.whenOpen();
    isPushed = await pushOnce(copy, sha, options);
  }
  copy.pushedSha = sha;
}

/** Returns false if the gate closed before the push had finished. */
async function pushOnce(copy: WorkingCopy, sha: string, options: PushOptions): Promise<boolean> {
  const { repository } = copy;
  const local = isLocal(repository);
  await openObjects(copy, options);
  const mounts: Mount[] = [
    { source: join(options.dir, "workspace"), target: WORKSPACE, writable: false },
    ...(local ? [{ source: localPath(repository), target: REMOTE, writable: true }] : []),
  ];
  let isEnded = false;
  const dir = join(options.dir, `push-${randomUUID().slice(0, 8)}`);
  const socketDirectory = join(dir, "proxy");
  await mkdir(socketDirectory, { recursive: true, mode: 0o700 });
  const remote = local ? undefined : await openRemote(repository, socketDirectory, options);
  try {
    const env = { ...configEnvironment(hardening(local)), GIT_CONFIG_NOSYSTEM: "1" };
    const sandbox = await startSandbox({
      host: options.host,
      dir,
      mounts,
      relays: remote?.relays ?? [],
      env,
      limits: limitsFor(options.host.limits),
    }).catch((error: unknown) => {
      throw new GitFailed(
        `Cannot push to ${nameOf(repository)}`,
        `its sandbox could not be started (${(error as Error).message})`,
      ); // not SandboxGone: the agent's own sandbox is still running
    });
    options.ownSandbox(sandbox);
    const watching = setInterval(() => {
      if (isOpen(options.gate)) return;
      isEnded = true;
      sandbox.kill();
    }, WATCH_MS);
    try {
      await pushFrom(sandbox, copy, sha, remote?.url ?? sandbox.inside(REMOTE), options);
    } finally {
      clearInterval(watching);
      await sandbox.stop();
    }
    return true;
  } catch (error) {
    options.signal.throwIfAborted();
    // The gate aborted the push, whatever git reported.
    if (isEnded || error instanceof OutboundGateClosed || !isOpen(options.gate)) return false;
    throw error;
  } finally {
    remote?.close();
  }
}

/**
 * Makes the agent's git objects readable for the pushing sandbox, which may run as a different user of the host. The
 * chmod runs inside the agent's sandbox, so it cannot affect anything outside it.
 */
async function openObjects(copy: WorkingCopy, { agent, signal }: PushOptions): Promise<void> {
  const git = `${agent.workspace}/${copy.directory}/.git`;
  const opened = await agent.exec(["chmod", "-R", "a+rX", `${git}/objects`], {
    cwd: agent.workspace,
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  const found = await agent.exec(["chmod", "a+x", git, `${agent.workspace}/${copy.directory}`], {
    cwd: agent.workspace,
    timeoutMs: TIMEOUT_MS,
    signal,
  });
  signal.throwIfAborted();
  if (opened.exitCode !== 0 || found.exitCode !== 0)
    throw new GitFailed(`Cannot push from ${copy.directory}`, lastLines(opened.output + found.output));
}

/**
 * Opens a connection to a remote code host for this repository only. The credential is added outside the sandbox, and
 * only while the outbound gate is open.
 */
async function openRemote(
  repository: worker.Repository,
  dir: string,
  { host, gate, outbound }: PushOptions,
): Promise<{ relays: Relay[]; url: string; close: () => void }> {
  const git = new GitGateway([repository], true, outbound);
  const settings = { policy: new EgressPolicy(NO_EGRESS), gate, git, onDenied: () => undefined };
  if (host.kind === "none") {
    const { proxy, port } = await EgressProxy.listenLocally(settings);
    return { relays: [], url: git.urlOf(`http://127.0.0.1:${port}`, repository), close: () => proxy.close() };
  }
  const socket = join(dir, "proxy.sock");
  const proxy = await EgressProxy.listen(socket, settings);
  return {
    relays: [{ port: PROXY_PORT, socket }],
    url: git.urlOf(`http://127.0.0.1:${PROXY_PORT}`, repository),
    close: () => proxy.close(),
  };
}

function isOpen(gate: Pick<OutboundGate, "assertOpen">): boolean {
  try {
    gate.assertOpen();
    return true;
  } catch {
    return false;
  }
}

async function pushFrom(
  sandbox: Sandbox,
  copy: WorkingCopy,
  sha: string,
  remote: string,
  { signal, gate }: PushOptions,
): Promise<void> {
  const { repository } = copy;
  const scratch = sandbox.scratch;
  const objects = `${sandbox.workspace}/${copy.directory}/.git/objects`;
  const env = { HOME: scratch, GIT_CONFIG_GLOBAL: `${scratch}/gitconfig`, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects };
  const git = async (...args: string[]) =>
    sandbox.exec(["git", ...args], { cwd: scratch, timeoutMs: TIMEOUT_MS, signal, env });
  // The receiving side of a local repository ignores the environment and reads only this file.
  const trusted = await git("config", "--file", "gitconfig", "safe.directory", "*");
  const made = await git("init", "--quiet", "--bare", "--template=", "push.git");
  if (trusted.exitCode !== 0 || made.exitCode !== 0)
    throw new GitFailed("Cannot prepare the push", trusted.output + made.output);
  const lease = `--force-with-lease=refs/heads/${repository.workBranch}:${copy.pushedSha}`;
  gate.assertOpen();
  const pushed = await git(
    "-C",
    "push.git",
    "push",
    "--porcelain",
    "--no-verify",
    lease,
    remote,
    `${sha}:refs/heads/${repository.workBranch}`,
  );
  signal.throwIfAborted();
  if (pushed.exitCode === 0) return;
  if (/stale info|fetch first|non-fast-forward/.test(pushed.output)) throw new BranchMoved(copy);
  throw new GitFailed(
    `Cannot push ${repository.workBranch} of ${nameOf(repository)}`,
    pushed.timedOut ? "it took too long" : lastLines(pushed.output),
  );
}
