import { lastLines } from "../sandbox/last-lines.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { GitFailed } from "./host-git.ts";
import type { WorkingCopy } from "./repository.ts";
import { sandboxGit } from "./sandbox-git.ts";
import { bundleName, FILES, MANIFEST, manifestSchema, SNAPSHOT_REF, SNAPSHOT_TIMEOUT_MS, type Manifest } from "./snapshot-format.ts";

const STAGE = "restored";
const MANIFEST_BYTES_MAX = 1024 * 1024;

/**
 * Brings fresh clones to the state of a snapshot: same branch, local commits and `git status`, but nothing is staged. Everything is unpacked
 * inside the sandbox. `archive` is a file name in the exchange directory. Errors: GitFailed.
 */
export async function restoreSnapshot(sandbox: Sandbox, copies: readonly WorkingCopy[], archive: string, signal: AbortSignal): Promise<void> {
  const stage = `${sandbox.exchange}/${STAGE}`;
  const inShell = async (command: string) => {
    const run = await sandbox.exec(command, { cwd: "/", timeoutMs: SNAPSHOT_TIMEOUT_MS, signal });
    signal.throwIfAborted();
    if (run.exitCode !== 0) throw new GitFailed("The snapshot cannot be restored", lastLines(run.output));
  };
  await inShell(`mkdir -p '${stage}' && tar -C '${stage}' --no-same-owner -xf '${sandbox.exchange}/${archive}'`);
  const manifest = await readManifest(sandbox);
  if (manifest.hasFiles) await inShell(`tar -C '${sandbox.workspace}' --no-same-owner -xzf '${stage}/${FILES}'`);
  for (const { directory, branch } of manifest.repositories) {
    const copy = copies.find((candidate) => candidate.directory === directory);
    if (!copy) throw new GitFailed("The snapshot cannot be restored", `it holds ${directory}, which is no repository of this run`);
    await restoreCopy(sandbox, copy, branch, `${stage}/${bundleName(directory)}`, signal);
  }
  for (const copy of copies) {
    // Those that are not in it had been left as their base.
    if (!manifest.repositories.some(({ directory }) => directory === copy.directory)) await startOver(sandbox, copy, copy.baseSha, signal);
  }
  await inShell(`rm -rf '${stage}' '${sandbox.exchange}/${archive}'`);
}

/** Takes a clone back to where it began, whatever a restore that failed has left in it. Inside the sandbox: the snapshot was the agent's. Errors: GitFailed. */
export async function startOver(sandbox: Sandbox, copy: WorkingCopy, start: string, signal: AbortSignal): Promise<void> {
  await sandboxGit(sandbox, copy, ["checkout", "--quiet", "--force", "--no-track", "-B", copy.repository.workBranch, start], { signal });
  await sandboxGit(sandbox, copy, ["clean", "--quiet", "-ffdx"], { signal });
}

async function restoreCopy(sandbox: Sandbox, copy: WorkingCopy, branch: string | null, bundle: string, signal: AbortSignal): Promise<void> {
  const git = (...args: string[]) => sandboxGit(sandbox, copy, args, { signal });
  await git("fetch", "--quiet", "--no-tags", bundle, `${SNAPSHOT_REF}:${SNAPSHOT_REF}`);
  await (branch === null ? git("checkout", "--quiet", "--detach", `${SNAPSHOT_REF}~1`) : git("checkout", "--quiet", "--no-track", "-B", branch, `${SNAPSHOT_REF}~1`));
  await git("read-tree", "-u", "--reset", SNAPSHOT_REF);
  await git("reset", "--quiet");
  await git("update-ref", "-d", SNAPSHOT_REF);
}

async function readManifest(sandbox: Sandbox): Promise<Manifest> {
  const content = await sandbox.readFile(sandbox.exchange, `${STAGE}/${MANIFEST}`, MANIFEST_BYTES_MAX);
  try {
    return manifestSchema.parse(JSON.parse(content.toString("utf8")));
  } catch (error) {
    throw new GitFailed("The snapshot cannot be restored", `its manifest cannot be read: ${error instanceof Error ? error.message : ""}`);
  }
}
