import { randomUUID } from "node:crypto";
import { constants, createWriteStream } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { lastLines } from "../sandbox/last-lines.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { GitFailed } from "./host-git.ts";
import type { WorkingCopy } from "./repository.ts";
import { bundleName, FILES, MANIFEST, SNAPSHOT_BYTES_MAX, SNAPSHOT_REF, SNAPSHOT_TIMEOUT_MS, type Manifest } from "./snapshot-format.ts";
import { isUntouched, leftOut, STAGE, workspaceState, type WorkspaceState } from "./workspace-state.ts";

const ARCHIVE = "snapshot.tar";

/** Everything in a copy becomes a commit on top of its HEAD, and with all that the clone did not have, a bundle. */
const SCRIPT = `set -eu; umask 077; export GIT_OPTIONAL_LOCKS=0
printf '%s' "$CHANGED" | while read -r directory tree base name; do
  cd "$WORKSPACE/$directory"
  git update-ref "$REF" "$(git commit-tree "$tree" -p HEAD -m snapshot)"
  git bundle create --quiet "$STAGE/$name" "$REF" "^$base"
  git update-ref -d "$REF"
done
if [ "$HAS_FILES" = true ]; then
  cd "$WORKSPACE"; exclude=; for name in $LEFT_OUT; do exclude="$exclude --exclude=./$name"; done
  tar $exclude -czf "$STAGE/$FILES" . || [ $? -eq 1 ]
fi
rm -f "$ARCHIVE"; tar -C "$STAGE" -cf "$ARCHIVE" .; rm -rf "$STAGE"
`;

/** Whether the workspace is what fresh clones are. */
export const isPristine = (state: WorkspaceState, copies: readonly WorkingCopy[]): boolean =>
  !state.hasFiles && state.copies.every((one) => copies.some((copy) => copy.directory === one.directory && isUntouched(one, copy)));

/**
 * Packs what the workspace has beyond fresh clones: local commits, the branch, changed, deleted and untracked files (ignored ones left out), and
 * files outside the repositories. All of it is made inside the sandbox; `snapshotFile` or `takeOut` then gives the file. What a background process
 * of the agent changes meanwhile may be in it or not. Errors: GitFailed.
 */
export async function packSnapshot(sandbox: Sandbox, copies: readonly WorkingCopy[], state: WorkspaceState): Promise<void> {
  const changed = copies.flatMap((copy) => {
    const found = state.copies.find(({ directory }) => directory === copy.directory);
    return found && !isUntouched(found, copy) ? [{ copy, found }] : [];
  });
  const manifest: Manifest = { version: 1, repositories: changed.map(({ found: { directory, branch } }) => ({ directory, branch })), hasFiles: state.hasFiles };
  const unique = { ...manifest, id: randomUUID() }; // a workspace that becomes what it was is still a snapshot of its own: older ones are deleted
  await sandbox.writeFile(sandbox.exchange, `${STAGE}/${MANIFEST}`, Buffer.from(JSON.stringify(unique)));
  const env = {
    ...{ STAGE: `${sandbox.exchange}/${STAGE}`, ARCHIVE: `${sandbox.exchange}/${ARCHIVE}`, WORKSPACE: sandbox.workspace, REF: SNAPSHOT_REF, FILES },
    ...{ CHANGED: changed.map(({ copy, found }) => `${copy.directory} ${found.tree} ${copy.baseSha} ${bundleName(copy.directory)}\n`).join(""), HAS_FILES: String(state.hasFiles), LEFT_OUT: leftOut(copies).join(" ") },
  };
  const run = await sandbox.exec(SCRIPT, { cwd: "/", timeoutMs: SNAPSHOT_TIMEOUT_MS, env });
  if (run.exitCode !== 0) throw new GitFailed("The snapshot failed", run.timedOut ? "it took too long" : lastLines(run.output));
}

/** Looks and packs; says whether there was anything to keep. Errors: GitFailed. */
export async function takeSnapshot(sandbox: Sandbox, copies: readonly WorkingCopy[]): Promise<boolean> {
  const state = await workspaceState(sandbox, copies);
  if (isPristine(state, copies)) return false;
  await packSnapshot(sandbox, copies, state);
  return true;
}

/** The snapshot's file on the host; ask when the sandbox is gone, so that nobody can change it any more. Errors: GitFailed. */
export async function snapshotFile(dir: string): Promise<string> {
  const { file, path } = await openArchive(dir);
  await file.close();
  return path;
}

/** A copy of the snapshot, out of reach of a sandbox that goes on. Errors: GitFailed. */
export async function takeOut(dir: string): Promise<string> {
  const { file } = await openArchive(dir);
  const path = join(dir, "checkpoint.tar");
  await pipeline(file.createReadStream({ end: SNAPSHOT_BYTES_MAX }), createWriteStream(path, { mode: 0o600 })); // closes the file
  return path;
}

/** The agent could have put anything in its place: only a regular file of bearable size is taken, and no link is followed. */
async function openArchive(dir: string): Promise<{ file: FileHandle; path: string }> {
  const path = join(dir, "exchange", ARCHIVE);
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => {
    throw new GitFailed("The snapshot failed", "its archive cannot be read");
  });
  const found = await file.stat();
  const fault = !found.isFile() || found.nlink !== 1 ? "its archive is no regular file" : found.size > SNAPSHOT_BYTES_MAX ? "it is larger than 512 MB" : undefined;
  if (fault === undefined) return { file, path };
  await file.close();
  throw new GitFailed("The snapshot failed", fault);
}
