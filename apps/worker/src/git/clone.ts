import { chmod, rm } from "node:fs/promises";
import { join } from "node:path";
import type { worker } from "@millwright/contracts";
import type { OutboundRule } from "@millwright/outbound";
import { lastLines } from "../sandbox/last-lines.ts";
import type { PlatformShell } from "../sandbox/platform-shell.ts";
import { pinnedAddress } from "./pinned-address.ts";
import { fetchIntoCache } from "./repository-caches.ts";
import { credential, GitFailed, hardening, type HostGit } from "./host-git.ts";
import { isLocal, isSha, nameOf, type WorkingCopy } from "./repository.ts";
import { SHELL_GIT } from "./shell-git.ts";

const CLONE_TIMEOUT_MS = 10 * 60_000;

/**
 * Creates the clone and prints the commit that it checks out: START if it exists, otherwise the base. A bundle has no
 * HEAD from which git would create the local base branch, so the script creates it: agents compare with it (`git diff
 * main`).
 */
const CLONE = `set -eu
git clone --quiet --no-checkout --template= "$INBOX/$BUNDLE" "$WORKSPACE/$DIRECTORY"
cd "$WORKSPACE/$DIRECTORY"
git remote set-url origin "$URL"
git update-ref "refs/heads/$BASE_BRANCH" "$BASE"
git symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$BASE_BRANCH"
if [ -z "$START" ] || ! git cat-file -e "$START^{commit}" 2>/dev/null; then START=$BASE; fi
git checkout --quiet --no-track -B "$BRANCH" "$START"
git rev-parse --verify HEAD
`;

/**
 * The same for a clone that contains only the history of one commit and what the run has pushed before. Other branches
 * and tags are not included.
 */
const CLONE_COMMIT = `set -eu
git init --quiet --template= "$WORKSPACE/$DIRECTORY"
cd "$WORKSPACE/$DIRECTORY"
git remote add origin "$URL"
git fetch --quiet --no-tags "$INBOX/$BUNDLE" $FETCHED
git update-ref "refs/heads/$BASE_BRANCH" "$BASE"
git symbolic-ref refs/remotes/origin/HEAD "refs/remotes/origin/$BASE_BRANCH"
if [ -z "$START" ] || ! git cat-file -e "$START^{commit}" 2>/dev/null; then START=$BASE; fi
git checkout --quiet --no-track -B "$BRANCH" "$START"
git rev-parse --verify HEAD
`;

export type CloneOptions = {
  readonly git: HostGit;
  readonly outbound: OutboundRule;
  /** The directory of bare copies of repositories. They outlive executions and are shared by them. */
  readonly cacheDir: string;
  /** Runs the clone script; its inbox is `inbox`. */
  readonly shell: PlatformShell;
  /** A directory on the host that no sandbox can write to. */
  readonly inbox: string;
  /** The clone's directory, relative to the workspace. */
  readonly directory: string;
  /**
   * The commit that the work branch on the code host should point to according to the run's events; undefined: its
   * current commit.
   */
  readonly expectedSha: string | undefined;
  /**
   * The commit to start at instead of the base, if it still exists. Set for a later execution whose snapshot may be
   * missing.
   */
  readonly startSha: string | undefined;
};

/** A clone and the commit that is checked out in it. */
export type Clone = { readonly copy: WorkingCopy; readonly start: string };

/**
 * Clones a repository into the workspace, on its work branch. Git on the host fetches into the worker's bare cache,
 * with the credential in its environment, and writes a bundle of the current branches and tags. The clone is created
 * from the bundle inside a sandbox. Throws `GitFailed`.
 */
export async function cloneRepository(repository: worker.Repository, options: CloneOptions): Promise<Clone> {
  const { git, directory, shell, inbox } = options;
  const settings = {
    ...hardening(isLocal(repository)),
    ...credential(repository.cloneUrl, repository.authorizationHeader),
    ...(isLocal(repository) ? {} : await pinnedAddress(repository, options.outbound)),
  };
  const cache = await fetchIntoCache(repository, options, settings);
  const baseBranch = repository.baseBranch || (await defaultBranch(repository, git, settings));
  const shaOf = (branch: string) => shaOfRef(git, cache, `refs/heads/${branch}`);
  const pin = repository.baseCommit === "" ? undefined : await pinCommit(repository, git, cache);
  const baseSha = pin?.sha ?? (await shaOf(baseBranch));
  if (baseSha === "")
    throw new GitFailed(`Cannot clone ${nameOf(repository)}`, `it has no branch ${baseBranch || "at all"}`);
  const remoteSha = await shaOf(repository.workBranch);
  const bundle = join(inbox, `${directory}.clone`);
  const taken = pin
    ? [pin.ref, ...(remoteSha === "" ? [] : [`refs/heads/${repository.workBranch}`])]
    : ["--branches", "--tags"];
  await git.run(
    `Cannot clone ${nameOf(repository)}`,
    ["-C", cache, "bundle", "create", "--quiet", bundle, ...taken],
    hardening(true),
  );
  await chmod(bundle, 0o644);
  const url = isLocal(repository) ? `/repositories/${nameOf(repository)}.git` : repository.cloneUrl;
  const env = {
    ...SHELL_GIT,
    BUNDLE: `${directory}.clone`,
    DIRECTORY: directory,
    URL: url,
    BRANCH: repository.workBranch,
    START: options.startSha ?? "",
    BASE: baseSha,
    BASE_BRANCH: baseBranch,
  };
  const fetched = taken
    .map((ref) => `${ref}:refs/remotes/origin/${ref === pin?.ref ? baseBranch : repository.workBranch}`)
    .join(" ");
  const run = await shell.run(pin ? CLONE_COMMIT : CLONE, {
    env: pin ? { ...env, FETCHED: fetched } : env,
    timeoutMs: CLONE_TIMEOUT_MS,
  });
  const start = run.output.trim();
  if (run.exitCode !== 0 || !isSha(start))
    throw new GitFailed(
      `Cannot clone ${nameOf(repository)}`,
      run.timedOut ? "it took too long" : lastLines(run.output),
    );
  await rm(bundle);
  return { copy: { repository, directory, baseBranch, baseSha, pushedSha: options.expectedSha ?? remoteSha }, start };
}

/**
 * Creates a ref for a commit in the cache, which a bundle requires. The commit must be reachable from a current branch
 * or tag of the code host, even if the cache still contains it. Throws `GitFailed` with the reason `commit_not_found`.
 */
async function pinCommit(
  repository: worker.Repository,
  git: HostGit,
  cache: string,
): Promise<{ readonly sha: string; readonly ref: string }> {
  const sha = repository.baseCommit;
  const what = `Cannot clone ${nameOf(repository)}`;
  const absent = new GitFailed(what, `no branch or tag contains the commit ${sha}`, COMMIT_NOT_FOUND);
  const leading = isSha(sha)
    ? await git
        .run(
          what,
          [
            "-C",
            cache,
            "for-each-ref",
            "--count=1",
            "--format=%(refname)",
            "--contains",
            sha,
            "refs/heads",
            "refs/tags",
          ],
          hardening(true),
        )
        .catch(unlessAborted(absent))
    : "";
  if (leading.trim() === "") throw absent;
  const ref = `refs/millwright/pinned/${sha}`;
  await git.run(what, ["-C", cache, "update-ref", ref, sha], hardening(true));
  return { sha, ref };
}

/** Returns an error handler that replaces git's errors by `failure` and rethrows the abort reason. */
const unlessAborted =
  (failure: GitFailed) =>
  (error: unknown): never => {
    throw error instanceof GitFailed ? failure : error;
  };

const COMMIT_NOT_FOUND = "commit_not_found";

/**
 * Returns the commit of exactly this ref, or "" if the ref does not exist. Git's pattern also matches refs below it.
 */
async function shaOfRef(git: HostGit, cache: string, ref: string): Promise<string> {
  const listed = await git.run(
    "Cannot read the cache",
    ["-C", cache, "for-each-ref", "--format=%(refname) %(objectname)", ref],
    hardening(true),
  );
  return (
    listed
      .split("\n")
      .find((line) => line.startsWith(`${ref} `))
      ?.slice(ref.length + 1) ?? ""
  );
}

async function defaultBranch(
  repository: worker.Repository,
  git: HostGit,
  settings: Record<string, string>,
): Promise<string> {
  const listed = await git.run(
    `Cannot read ${nameOf(repository)}`,
    ["ls-remote", "--symref", "--", repository.cloneUrl, "HEAD"],
    settings,
  );
  return /^ref: refs\/heads\/(\S+)\tHEAD$/m.exec(listed)?.[1] ?? "";
}
