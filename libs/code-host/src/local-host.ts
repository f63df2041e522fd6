import { realpath } from "node:fs/promises";
import { join, sep } from "node:path";
import { DomainError, isDomainError, notFound } from "@millwright/errors";
import type { CodeHost, Diff, DiffFile, FileChoice, Repository, RepositoryFile } from "./code-host.ts";
import { runGit } from "./git.ts";
import { checkBranch, checkRepository, isSha } from "./names.ts";

const LISTING_BYTES_MAX = 64 * 1024 * 1024;

export type LocalOptions = {
  /** Directory of bare repositories `<root>/<owner>/<repo>.git`; already checked against the operator's allow list. */
  readonly root: string;
  /** Diff texts are truncated at this size; default 1 MiB. */
  readonly diffBytesMax?: number;
};

/**
 * Serves bare repositories of this machine. Their pull requests are records of the platform; the host only compares.
 */
export interface LocalHost extends CodeHost {
  /**
   * Compares branches or full commit ids. Errors: branch_not_found, branch_invalid.
   */
  diff(repository: Repository, base: string, head: string): Promise<Diff>;
  /** Returns how many commits the head has that the base has not. Errors: branch_not_found, branch_invalid. */
  countCommits(repository: Repository, base: string, head: string): Promise<number>;
  /**
   * Returns when a commit was merged into a branch; undefined if the branch does not contain it. After a fast-forward,
   * which leaves no merge commit, it is the commit's own time. Errors: branch_not_found, branch_invalid.
   */
  mergeTime(repository: Repository, base: string, headSha: string): Promise<Date | undefined>;
}

export function localHost(options: LocalOptions): LocalHost {
  const pathOf = ({ owner, repo }: Repository) => join(options.root, owner, `${repo}.git`);
  const find = (repository: Repository) => findRepository(options.root, pathOf(checkRepository(repository)));
  return {
    cloneUrl: (repository) => pathOf(checkRepository(repository)),
    defaultBranch: async (repository) => defaultBranch(await find(repository)),
    branchSha: async (repository, branch) => commitOf(await find(repository), `refs/heads/${checkBranch(branch)}`),
    commitOf: async (repository, ref) => refCommit(await find(repository), ref),
    readFiles: async (repository, choice) => readFiles(await find(repository), choice),
    diff: async (repository, base, head) =>
      diff(await find(repository), base, head, options.diffBytesMax ?? 1024 * 1024),
    countCommits: async (repository, base, head) => countCommits(await find(repository), base, head),
    mergeTime: async (repository, base, headSha) => mergeTime(await find(repository), base, headSha),
  };
}

/** Returns the real path, which must be inside the root: a symbolic link must not lead out. */
async function findRepository(root: string, path: string): Promise<string> {
  try {
    const [realRoot, real] = await Promise.all([realpath(root), realpath(path)]);
    if (real.startsWith(realRoot + sep) && (await runGit(real, ["rev-parse", "--git-dir"])).exitCode === 0) return real;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ENOTDIR") throw error;
  }
  throw notFound("repository");
}

/** Returns the branch of HEAD if it exists, else the only branch. */
async function defaultBranch(gitDir: string): Promise<string> {
  const head = line((await runGit(gitDir, ["symbolic-ref", "--quiet", "--short", "HEAD"])).stdout);
  if (head !== "" && (await commitOf(gitDir, `refs/heads/${head}`)) !== undefined) return head;
  const listed = await runGit(gitDir, ["for-each-ref", "--count=2", "--format=%(refname:lstrip=2)", "refs/heads/"]);
  const [only, second] = listed.stdout.toString("utf8").split("\n").filter(Boolean);
  if (only !== undefined && second === undefined) return only;
  throw new DomainError({
    kind: "conflict",
    reason: "repository_empty",
    message: "The repository is empty: it has no default branch. Push a commit first.",
  });
}

/** Regular files only: the content of a symbolic link is a path. */
async function readFiles(gitDir: string, { wants, filesMax, fileBytesMax }: FileChoice): Promise<RepositoryFile[]> {
  const branch = await defaultBranch(gitDir).catch((error: unknown) => {
    if (isDomainError(error) && error.reason === "repository_empty") return undefined;
    throw error;
  });
  if (branch === undefined) return [];
  const listed = await runGit(
    gitDir,
    ["ls-tree", "-r", "-z", "--long", "--full-tree", "--end-of-options", `refs/heads/${checkBranch(branch)}`],
    LISTING_BYTES_MAX,
  );
  const chosen = listed.stdout
    .toString("utf8")
    .split("\0")
    .flatMap((entry) => {
      const [, oid = "", bytes = "", path = ""] = /^100\d{3} blob ([0-9a-f]+) +(\d+)\t(.+)$/s.exec(entry) ?? [];
      return path !== "" && wants(path) && Number(bytes) <= fileBytesMax ? [{ oid, path }] : [];
    });
  const files: RepositoryFile[] = [];
  for (const { oid, path } of chosen.slice(0, filesMax))
    files.push({ path, content: new Uint8Array((await runGit(gitDir, ["cat-file", "blob", oid])).stdout) });
  return files;
}

async function commitOf(gitDir: string, revision: string): Promise<string | undefined> {
  const { exitCode, stdout } = await runGit(gitDir, [
    "rev-parse",
    "--verify",
    "--quiet",
    "--end-of-options",
    `${revision}^{commit}`,
  ]);
  return exitCode === 0 ? line(stdout) : undefined;
}

async function refCommit(gitDir: string, ref: string): Promise<string | undefined> {
  const name = checkBranch(ref);
  for (const revision of [`refs/heads/${name}`, `refs/tags/${name}`, ...(isSha(name) ? [name] : [])]) {
    const sha = await commitOf(gitDir, revision);
    if (sha !== undefined) return sha;
  }
  return undefined;
}

async function commit(gitDir: string, name: string): Promise<string> {
  const sha = await commitOf(gitDir, isSha(name) ? name : `refs/heads/${checkBranch(name)}`);
  if (sha === undefined) throw notFound("branch");
  return sha;
}

const DIFF = ["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames", "--ignore-submodules=none"];

async function diff(gitDir: string, base: string, head: string, bytesMax: number): Promise<Diff> {
  const [baseSha, headSha] = [await commit(gitDir, base), await commit(gitDir, head)];
  const merge = await runGit(gitDir, ["merge-base", baseSha, headSha]);
  const mergeBaseSha = merge.exitCode === 0 ? line(merge.stdout) : undefined;
  const range = [mergeBaseSha ?? baseSha, headSha, "--"];
  const counted = await runGit(gitDir, [...DIFF, "--numstat", "-z", ...range]);
  const shown = await runGit(gitDir, [...DIFF, "--unified=3", ...range], bytesMax);
  return {
    baseSha,
    headSha,
    mergeBaseSha,
    files: parseNumstat(counted.stdout.toString("utf8")),
    text: shown.stdout.toString("utf8"),
    isTruncated: shown.isTruncated,
  };
}

async function countCommits(gitDir: string, base: string, head: string): Promise<number> {
  const [baseSha, headSha] = [await commit(gitDir, base), await commit(gitDir, head)];
  return Number(
    line((await runGit(gitDir, ["rev-list", "--count", "--end-of-options", `${baseSha}..${headSha}`])).stdout),
  );
}

/**
 * Parses `<added>\t<deleted>\t<path>\0`; a rename has an empty path and then `<old>\0<new>\0`; binary files have `-`.
 */
function parseNumstat(text: string): DiffFile[] {
  const fields = text.split("\0");
  const files: DiffFile[] = [];
  for (let i = 0; i < fields.length; i++) {
    const [added, deleted, path] = (fields[i] ?? "").split("\t");
    if (added === undefined || deleted === undefined || path === undefined) continue;
    const counts = { additions: Number(added) || 0, deletions: Number(deleted) || 0, isBinary: added === "-" };
    if (path !== "") files.push({ path, ...counts });
    else files.push({ oldPath: fields[++i] ?? "", path: fields[++i] ?? "", ...counts });
  }
  return files;
}

const line = (output: Buffer): string => output.toString("utf8").trim();

/** The merge is the oldest commit of the branch's own line that has the head as an ancestor. */
async function mergeTime(gitDir: string, base: string, headSha: string): Promise<Date | undefined> {
  const [baseSha, head] = [await commit(gitDir, base), await commitOf(gitDir, headSha)];
  if (head === undefined) return undefined;
  if ((await runGit(gitDir, ["merge-base", "--is-ancestor", head, baseSha])).exitCode !== 0) return undefined;
  const range = ["rev-list", "--first-parent", "--ancestry-path", "--reverse", "--parents", `${head}..${baseSha}`];
  const [after = "", parent] = line((await runGit(gitDir, range)).stdout)
    .split("\n")[0]!
    .split(" ");
  const isFastForward = after === "" || parent === head;
  const merge = isFastForward ? head : after;
  const { stdout } = await runGit(gitDir, ["show", "--no-patch", "--format=%ct", merge]);
  return new Date(1000 * Number(line(stdout)));
}
