import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { lastLines } from "../sandbox/last-lines.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { GitFailed } from "./host-git.ts";
import { headOf, isDirty } from "./commit.ts";
import type { WorkingCopy } from "./repository.ts";
import { sandboxGit } from "./sandbox-git.ts";
import { bundleName, FILES, MANIFEST, SNAPSHOT_BYTES_MAX, SNAPSHOT_REF, SNAPSHOT_TIMEOUT_MS, type Manifest } from "./snapshot-format.ts";

const STAGE = "snapshot";
const ARCHIVE = "snapshot.tar";

/**
 * Packs what the workspace has beyond fresh clones: local commits, the branch, changed, deleted and untracked files (ignored ones left out), and
 * files outside the repositories. All of it is made inside the sandbox. Says whether there was anything to keep; `snapshotFile` then answers the
 * file. Errors: GitFailed.
 */
export async function takeSnapshot(sandbox: Sandbox, copies: readonly WorkingCopy[]): Promise<boolean> {
  const stage = `${sandbox.exchange}/${STAGE}`;
  await inShell(sandbox, `rm -rf '${stage}' && mkdir -p '${stage}'`);
  const repositories: Manifest["repositories"] = [];
  for (const copy of copies) {
    if (await hasChanged(sandbox, copy)) repositories.push({ directory: copy.directory, branch: await bundle(sandbox, copy, stage) });
  }
  const hasFiles = await packOtherFiles(sandbox, copies, stage);
  if (repositories.length === 0 && !hasFiles) return false;
  const manifest: Manifest = { version: 1, repositories, hasFiles };
  await sandbox.writeFile(sandbox.exchange, `${STAGE}/${MANIFEST}`, Buffer.from(JSON.stringify(manifest)));
  await inShell(sandbox, `tar -C '${stage}' -cf '${sandbox.exchange}/${ARCHIVE}' . && rm -rf '${stage}'`);
  return true;
}

/**
 * The snapshot's file on the host; ask when the sandbox is gone, so that nobody can change it any more. The agent could have put anything in
 * its place: only a regular file of bearable size is taken, and no link is followed. Errors: GitFailed.
 */
export async function snapshotFile(dir: string): Promise<string> {
  const path = join(dir, "exchange", ARCHIVE);
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => {
    throw new GitFailed("The snapshot failed", "its archive cannot be read");
  });
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink !== 1) throw new GitFailed("The snapshot failed", "its archive is no regular file");
    if (found.size > SNAPSHOT_BYTES_MAX) throw new GitFailed("The snapshot failed", "it is larger than 512 MB");
    return path;
  } finally {
    await file.close();
  }
}

async function hasChanged(sandbox: Sandbox, copy: WorkingCopy): Promise<boolean> {
  const branch = (await sandboxGit(sandbox, copy, ["branch", "--show-current"])).trim();
  return branch !== copy.repository.workBranch || (await headOf(sandbox, copy)) !== copy.baseSha || (await isDirty(sandbox, copy));
}

/** Commits everything with an index of its own, so that the agent's index stays as it is. Answers the branch; null = a detached HEAD. */
async function bundle(sandbox: Sandbox, copy: WorkingCopy, stage: string): Promise<string | null> {
  const git = async (...args: string[]) => (await sandboxGit(sandbox, copy, args, { env: { GIT_INDEX_FILE: `${stage}/index`, GIT_OPTIONAL_LOCKS: "0" } })).trim();
  await git("read-tree", "HEAD");
  await git("-c", "advice.addEmbeddedRepo=false", "add", "--all");
  const state = await git("commit-tree", await git("write-tree"), "-p", "HEAD", "-m", "snapshot");
  await git("update-ref", SNAPSHOT_REF, state);
  await git("bundle", "create", "--quiet", `${stage}/${bundleName(copy.directory)}`, SNAPSHOT_REF, `^${copy.baseSha}`);
  await git("update-ref", "-d", SNAPSHOT_REF);
  await inShell(sandbox, `rm -f '${stage}/index'`);
  return (await git("branch", "--show-current")) || null;
}

/** Attachments stay out, and repositories have their bundles. */
async function packOtherFiles(sandbox: Sandbox, copies: readonly WorkingCopy[], stage: string): Promise<boolean> {
  const left = [".attachments", ...copies.map((copy) => copy.directory)];
  const { entries } = await sandbox.list(sandbox.workspace, ".", "", 1);
  if (!entries.some((entry) => !left.includes(entry.path))) return false;
  await inShell(sandbox, `tar -C '${sandbox.workspace}' ${left.map((name) => `--exclude='./${name}'`).join(" ")} -czf '${stage}/${FILES}' .`);
  return true;
}

async function inShell(sandbox: Sandbox, command: string): Promise<void> {
  const run = await sandbox.exec(command, { cwd: "/", timeoutMs: SNAPSHOT_TIMEOUT_MS });
  if (run.exitCode !== 0) throw new GitFailed("The snapshot failed", lastLines(run.output));
}
