import { lastLines } from "../sandbox/last-lines.ts";
import type { PlatformShell } from "../sandbox/platform-shell.ts";
import { GitFailed } from "./host-git.ts";
import type { WorkingCopy } from "./repository.ts";
import { SHELL_GIT } from "./shell-git.ts";
import {
  bundleName,
  FILES,
  MANIFEST,
  manifestSchema,
  SNAPSHOT_REF,
  SNAPSHOT_TIMEOUT_MS,
  type Manifest,
} from "./snapshot-format.ts";

const MANIFEST_BYTES_MAX = 1024 * 1024;

/** Unpacks the archive into the outbox and prints the manifest. */
const UNPACK = `set -eu; umask 077; STAGE=$OUTBOX/restored; rm -rf "$STAGE"; mkdir "$STAGE"
tar -C "$STAGE" --no-same-owner -xf "$INBOX/$ARCHIVE"
head -c "$BYTES_MAX" "$STAGE/$MANIFEST"
`;
const RESTORE_FILES = `tar -C "$WORKSPACE" --no-same-owner -xzf "$OUTBOX/restored/$FILES"`;
const RESTORE_COPY = `set -eu; cd "$WORKSPACE/$DIRECTORY"
git fetch --quiet --no-tags "$OUTBOX/restored/$BUNDLE" "$REF:$REF"
if [ -n "$BRANCH" ]; then git checkout --quiet --no-track -B "$BRANCH" "$REF~1"; else git checkout --quiet --detach "$REF~1"; fi
git read-tree -u --reset "$REF"
git reset --quiet
git update-ref -d "$REF"
`;
const RESET_CLONE = `set -eu; cd "$WORKSPACE/$DIRECTORY"
git checkout --quiet --force --no-track -B "$BRANCH" "$START"
git clean --quiet -ffdx
`;

/**
 * Restores the state of a snapshot in fresh clones: the same branch, local commits and working tree, but with nothing
 * staged. `archive` is a file name in the shell's inbox. Throws `GitFailed`.
 */
export async function restoreSnapshot(
  shell: PlatformShell,
  copies: readonly WorkingCopy[],
  archive: string,
): Promise<void> {
  const run = async (script: string, env: Record<string, string>): Promise<string> => {
    const { exitCode, output, timedOut } = await shell.run(script, {
      timeoutMs: SNAPSHOT_TIMEOUT_MS,
      env: { ...SHELL_GIT, ...env },
    });
    if (exitCode !== 0)
      throw new GitFailed("The snapshot cannot be restored", timedOut ? "it took too long" : lastLines(output));
    return output;
  };
  const manifest = manifestIn(await run(UNPACK, { ARCHIVE: archive, MANIFEST, BYTES_MAX: String(MANIFEST_BYTES_MAX) }));
  const restored = manifest.repositories.map(({ directory, branch }) => {
    const copy = copies.find((candidate) => candidate.directory === directory);
    if (!copy)
      throw new GitFailed(
        "The snapshot cannot be restored",
        `it contains ${directory}, which is not a repository of this run`,
      );
    return { copy, branch: branch ?? "" };
  });
  if (manifest.hasFiles) await run(RESTORE_FILES, { FILES });
  for (const { copy, branch } of restored)
    await run(RESTORE_COPY, {
      DIRECTORY: copy.directory,
      BUNDLE: bundleName(copy.directory),
      BRANCH: branch,
      REF: SNAPSHOT_REF,
    });
  // Copies that are not in the snapshot had no changes compared with their base.
  for (const copy of copies)
    if (!restored.some((entry) => entry.copy === copy)) await resetClone(shell, copy, copy.baseSha);
}

/**
 * Resets a clone to its start commit and removes everything that a failed restore may have left. Throws `GitFailed`.
 */
export async function resetClone(shell: PlatformShell, copy: WorkingCopy, start: string): Promise<void> {
  const env = { ...SHELL_GIT, DIRECTORY: copy.directory, BRANCH: copy.repository.workBranch, START: start };
  const { exitCode, output } = await shell.run(RESET_CLONE, { timeoutMs: SNAPSHOT_TIMEOUT_MS, env });
  if (exitCode !== 0) throw new GitFailed(`${copy.directory} cannot be reset`, lastLines(output));
}

function manifestIn(content: string): Manifest {
  try {
    return manifestSchema.parse(JSON.parse(content));
  } catch (error) {
    throw new GitFailed(
      "The snapshot cannot be restored",
      `its manifest cannot be read: ${error instanceof Error ? error.message : ""}`,
    );
  }
}
