import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import { lastLines } from "../sandbox/last-lines.ts";
import type { PlatformShell } from "../sandbox/platform-shell.ts";
import { GitFailed } from "./host-git.ts";
import type { WorkingCopy } from "./repository.ts";
import { SHELL_GIT } from "./shell-git.ts";
import {
  bundleName,
  FILES,
  MANIFEST,
  SNAPSHOT_BYTES_MAX,
  SNAPSHOT_REF,
  SNAPSHOT_TIMEOUT_MS,
  type Manifest,
} from "./snapshot-format.ts";
import { isUntouched, excludedNames, type WorkspaceState } from "./workspace-state.ts";

const ARCHIVE = "snapshot.tar";

/** Commits everything in a copy on top of its HEAD and bundles it with all commits that the clone did not have. */
const SCRIPT = `set -eu; umask 077; STAGE=$OUTBOX/pack; rm -rf "$STAGE"; mkdir "$STAGE"; export GIT_OPTIONAL_LOCKS=0
printf '%s' "$CONTENT" > "$STAGE/$MANIFEST"
printf '%s' "$CHANGED" | while read -r directory tree base name; do
  cd "$WORKSPACE/$directory"
  git update-ref "$REF" "$(git commit-tree "$tree" -p HEAD -m snapshot)"
  git bundle create --quiet "$STAGE/$name" "$REF" "^$base"
  git update-ref -d "$REF"
done
if [ "$HAS_FILES" = true ]; then
  cd "$WORKSPACE"; exclude=; for name in $EXCLUDED; do exclude="$exclude --exclude=./$name"; done
  tar $exclude -czf "$STAGE/$FILES" . || [ $? -eq 1 ]
fi
rm -rf "$OUTBOX/$ARCHIVE"; tar -C "$STAGE" -cf "$OUTBOX/$ARCHIVE" .; rm -rf "$STAGE"
`;

/** Returns whether the workspace equals fresh clones. */
export const isPristine = (state: WorkspaceState, copies: readonly WorkingCopy[]): boolean =>
  !state.hasFiles &&
  state.copies.every((saved) => copies.some((copy) => copy.directory === saved.directory && isUntouched(saved, copy)));

/**
 * Packs the differences between the workspace and fresh clones: local commits, the branch, changed, deleted and
 * untracked files (but not ignored ones), and files outside the repositories. Returns the archive's path in the shell's
 * outbox. Concurrent changes by the agent's background processes may or may not be included. Throws `GitFailed`.
 */
export async function packSnapshot(
  shell: PlatformShell,
  copies: readonly WorkingCopy[],
  state: WorkspaceState,
): Promise<string> {
  const changed = copies.flatMap((copy) => {
    const found = state.copies.find(({ directory }) => directory === copy.directory);
    return found && !isUntouched(found, copy) ? [{ copy, found }] : [];
  });
  const manifest: Manifest = {
    version: 1,
    repositories: changed.map(({ found: { directory, branch } }) => ({ directory, branch })),
    hasFiles: state.hasFiles,
  };
  // the id makes each snapshot unique, because older snapshots are deleted: a workspace that returns to an earlier
  // state must not share a blob with one of them
  const unique = { ...manifest, id: randomUUID() };
  const env = {
    ...{ ...SHELL_GIT, ARCHIVE, REF: SNAPSHOT_REF, FILES, MANIFEST, CONTENT: JSON.stringify(unique) },
    ...{
      CHANGED: changed
        .map(({ copy, found }) => `${copy.directory} ${found.tree} ${copy.baseSha} ${bundleName(copy.directory)}\n`)
        .join(""),
      HAS_FILES: String(state.hasFiles),
      EXCLUDED: excludedNames(copies).join(" "),
    },
  };
  const run = await shell.run(SCRIPT, { timeoutMs: SNAPSHOT_TIMEOUT_MS, env });
  if (run.exitCode !== 0)
    throw new GitFailed("The snapshot failed", run.timedOut ? "it took too long" : lastLines(run.output));
  return checkedArchive(join(shell.outbox, ARCHIVE));
}

/**
 * Returns the path if it is a regular file within the size limit. The script ran with access to the agent's files, so
 * the agent could have replaced the archive. Throws `GitFailed`.
 */
export async function checkedArchive(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(() => {
    throw new GitFailed("The snapshot failed", "its archive cannot be read");
  });
  try {
    const found = await file.stat();
    if (!found.isFile() || found.nlink !== 1)
      throw new GitFailed("The snapshot failed", "its archive is not a regular file");
    if (found.size > SNAPSHOT_BYTES_MAX) throw new GitFailed("The snapshot failed", "it is larger than 512 MB");
    return path;
  } finally {
    await file.close();
  }
}
