import { createHash } from "node:crypto";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { lastLines } from "../sandbox/last-lines.ts";
import type { PlatformShell } from "../sandbox/platform-shell.ts";
import { GitFailed } from "./host-git.ts";
import { isSha, type WorkingCopy } from "./repository.ts";
import { SHELL_GIT } from "./shell-git.ts";
import { SNAPSHOT_TIMEOUT_MS } from "./snapshot-format.ts";

/**
 * The current state of a working copy. `tree` contains everything except ignored files. `branch` is null for a detached
 * HEAD.
 */
export type CopyState = {
  readonly directory: string;
  readonly branch: string | null;
  readonly head: string;
  readonly headTree: string;
  readonly tree: string;
};

export type WorkspaceState = {
  /** Changes when anything changes that a snapshot would contain. */
  readonly fingerprint: string;
  readonly copies: readonly CopyState[];
  /** Whether the workspace contains anything outside the repositories. */
  readonly hasFiles: boolean;
};

/** A directory outside the repositories that snapshots do not contain. */
const ATTACHMENTS = ".attachments";
/** Returns the names in the workspace that the files archive of a snapshot excludes. */
export const excludedNames = (copies: readonly Pick<WorkingCopy, "directory">[]): string[] => [
  ATTACHMENTS,
  ...copies.map(({ directory }) => directory),
];

/**
 * Reads the state with a separate index, so that the agent's index does not change. The index starts as a copy, so that
 * git does not read unchanged files again. The copy preserves the file times, which git uses to detect files that
 * changed within the same moment.
 */
const SCRIPT = `set -eu; umask 077; STAGE=$OUTBOX/index; rm -rf "$STAGE"; mkdir "$STAGE"; export GIT_OPTIONAL_LOCKS=0
stage_all() { GIT_INDEX_FILE="$STAGE/index" git -c advice.addEmbeddedRepo=false add --all; }
for directory in $COPIES; do
  cd "$WORKSPACE/$directory"; rm -f "$STAGE/index"
  cp -p "$(git rev-parse --git-path index)" "$STAGE/index" 2>/dev/null || true
  stage_all 2>/dev/null || { rm -f "$STAGE/index"; GIT_INDEX_FILE="$STAGE/index" git read-tree HEAD; stage_all; }
  tree=$(GIT_INDEX_FILE="$STAGE/index" git write-tree)
  printf 'copy\\t%s\\t%s\\t%s\\t%s\\t%s\\n' "$directory" "$(git branch --show-current)" "$(git rev-parse --verify HEAD)" "$(git rev-parse --verify 'HEAD^{tree}')" "$tree"
done
cd "$WORKSPACE"
rm -rf "$STAGE"
prune=; for name in $EXCLUDED; do prune="$prune -path ./$name -prune -o"; done
found=$(find . -mindepth 1 $prune -printf '%P %y %s %T@ %m %l\\n' 2>/dev/null | LC_ALL=C sort | cksum) || found=unknown
printf 'files\\t%s\\t%s\\n' "$(find . -mindepth 1 $prune -print | head -1 | wc -l | tr -d ' ')" "$found"
`;

/** Reads the state of everything that a snapshot would contain. The agent may have forged it. Throws `GitFailed`. */
export async function workspaceState(shell: PlatformShell, copies: readonly WorkingCopy[]): Promise<WorkspaceState> {
  const env = {
    ...SHELL_GIT,
    COPIES: copies.map(({ directory }) => directory).join(" "),
    EXCLUDED: excludedNames(copies).join(" "),
  };
  const run = await shell.run(SCRIPT, { timeoutMs: SNAPSHOT_TIMEOUT_MS, env });
  if (run.exitCode !== 0)
    throw new GitFailed("The snapshot failed", run.timedOut ? "it took too long" : lastLines(run.output));
  return parse(run.output, copies);
}

function parse(output: string, copies: readonly WorkingCopy[]): WorkspaceState {
  const lines = output.split("\n").map((line) => line.split("\t"));
  const states = copies.map(({ directory }): CopyState => {
    const [, , branch = "", head = "", headTree = "", tree = ""] =
      lines.find(([kind, name]) => kind === "copy" && name === directory) ?? [];
    if (![head, headTree, tree].every(isSha))
      throw new GitFailed("The snapshot failed", `the state of ${directory} cannot be read`);
    return { directory, branch: branch === "" ? null : branch, head, headTree, tree };
  });
  const [, found, sum] = lines.find(([kind]) => kind === "files") ?? [];
  if (found === undefined || sum === undefined)
    throw new GitFailed("The snapshot failed", "the workspace cannot be listed");
  const fingerprint = createHash("sha256")
    .update(JSON.stringify([states, found, sum === "unknown" ? Math.random() : sum]))
    .digest("hex");
  return { fingerprint, copies: states, hasFiles: found !== "0" };
}

/**
 * Returns whether the workspace of an execution without repositories contains files for a snapshot. To be called only
 * when no sandbox uses the workspace.
 */
export const hasFilesBeside = async (dir: string): Promise<boolean> =>
  (await readdir(join(dir, "workspace"))).some((name) => name !== ATTACHMENTS);

/** Returns whether a working copy is unchanged since it was cloned. */
export const isUntouched = (state: CopyState, copy: WorkingCopy): boolean =>
  state.branch === copy.repository.workBranch && state.head === copy.baseSha && state.tree === state.headTree;
