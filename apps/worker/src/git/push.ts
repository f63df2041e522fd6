import { randomUUID } from "node:crypto";
import { join } from "node:path";
import type { SandboxHandle } from "../executions/execution-context.ts";
import { lastLines } from "../sandbox/last-lines.ts";
import { limitsFor } from "../sandbox/limits.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { WORKSPACE, type Mount, type SandboxHost } from "../sandbox/spec.ts";
import { startSandbox } from "../sandbox/start-sandbox.ts";
import { configEnvironment, credential, GitFailed, hardening } from "./host-git.ts";
import { isLocal, isSha, localPath, nameOf, type WorkingCopy } from "./repository.ts";

const REMOTE = "/remote.git";
const TIMEOUT_MS = 120_000;

export type PushOptions = {
  readonly host: SandboxHost;
  /** The execution's directory; its `workspace` holds the agent's clone. */
  readonly dir: string;
  readonly signal: AbortSignal;
  /** Throws when no outside effect may start any more. */
  readonly assertOpen: () => void;
  readonly ownSandbox: (sandbox: SandboxHandle) => void;
};

/** The branch on the code host is not where we left it: somebody else pushed to it. */
export class BranchMoved extends GitFailed {
  constructor(copy: WorkingCopy) {
    super(`Cannot push ${copy.repository.workBranch} of ${nameOf(copy.repository)}`, "the branch was moved by somebody else");
    this.name = "BranchMoved";
  }
}

/**
 * Pushes one commit to the work branch, from a second, short sandbox. Git runs there in a new, empty repository that only borrows the
 * agent's objects, so that no hook, filter, address or setting of the agent's repository has a part in it; the credential is in that
 * sandbox's environment alone. The lease refuses the push when the branch is not where we know it to be.
 * Errors: BranchMoved, GitFailed, whatever `assertOpen` throws, the abort reason.
 */
export async function push(copy: WorkingCopy, sha: string, options: PushOptions): Promise<void> {
  if (!isSha(sha)) throw new GitFailed("Cannot push", "there is no such commit");
  const { repository } = copy;
  const local = isLocal(repository);
  const mounts: Mount[] = [
    { source: join(options.dir, "workspace"), target: WORKSPACE, writable: false },
    ...(local ? [{ source: localPath(repository), target: REMOTE, writable: true }] : []),
  ];
  const settings = { ...hardening(local), ...credential(repository.cloneUrl, repository.authorizationHeader) };
  const env = { ...configEnvironment(settings), GIT_CONFIG_NOSYSTEM: "1" };
  const sandbox = await startSandbox({ host: options.host, dir: join(options.dir, `push-${randomUUID().slice(0, 8)}`), mounts, network: !local, env, limits: limitsFor(options.host.limits) });
  options.ownSandbox(sandbox);
  try {
    await pushFrom(sandbox, copy, sha, options);
  } finally {
    await sandbox.stop();
  }
  copy.pushedSha = sha;
}

async function pushFrom(sandbox: Sandbox, copy: WorkingCopy, sha: string, { signal, assertOpen }: PushOptions): Promise<void> {
  const { repository } = copy;
  const scratch = sandbox.scratch;
  const objects = `${sandbox.workspace}/${copy.directory}/.git/objects`;
  const env = { HOME: scratch, GIT_CONFIG_GLOBAL: `${scratch}/gitconfig`, GIT_ALTERNATE_OBJECT_DIRECTORIES: objects };
  const git = async (...args: string[]) => sandbox.exec(["git", ...args], { cwd: scratch, timeoutMs: TIMEOUT_MS, signal, env });
  // The receiving side of a local repository reads no environment, only this file.
  const trusted = await git("config", "--file", "gitconfig", "safe.directory", "*");
  const made = await git("init", "--quiet", "--bare", "--template=", "push.git");
  if (trusted.exitCode !== 0 || made.exitCode !== 0) throw new GitFailed("Cannot prepare the push", trusted.output + made.output);
  const remote = isLocal(repository) ? sandbox.inside(REMOTE) : repository.cloneUrl;
  const lease = `--force-with-lease=refs/heads/${repository.workBranch}:${copy.pushedSha}`;
  assertOpen();
  const pushed = await git("-C", "push.git", "push", "--porcelain", "--no-verify", lease, remote, `${sha}:refs/heads/${repository.workBranch}`);
  signal.throwIfAborted();
  if (pushed.exitCode === 0) return;
  if (/stale info|fetch first|non-fast-forward/.test(pushed.output)) throw new BranchMoved(copy);
  throw new GitFailed(`Cannot push ${repository.workBranch} of ${nameOf(repository)}`, pushed.timedOut ? "it took too long" : lastLines(pushed.output));
}
