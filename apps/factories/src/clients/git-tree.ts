import { isDefinitionPath, treeFault, type TreeFile } from "@millwright/definition";
import { invalidArgument } from "@millwright/errors";
import { headGone } from "../domain/branch.ts";
import { definitionInvalid, type GitSettings, type Tree } from "../domain/source.ts";
import { ok, remoteOutput, withGit, type Git, type GitCredential, type GitRules } from "./git-repository.ts";

const CONTENT_BYTES_MAX = 24 * 1024 * 1024;
const HEADS_BYTES_MAX = 64 * 1024;
const HEAD = "refs/millwright/head";

/** Returns the commit of a branch; undefined if the branch does not exist. Errors: as `withGit` and `remoteOutput`. */
export const readGitHead = (
  rules: GitRules,
  source: GitSettings,
  credential: GitCredential | undefined,
): Promise<string | undefined> =>
  withGit(rules, { url: source.url, credential }, async (git) => {
    const ref = `refs/heads/${source.branch}`;
    const heads = remoteOutput(
      await git.run(["ls-remote", "--quiet", "--refs", "--end-of-options", git.url, ref], {
        stdoutBytesMax: HEADS_BYTES_MAX,
      }),
    );
    const line = heads
      .toString("utf8")
      .split("\n")
      .find((entry) => entry.endsWith(`\t${ref}`));
    return line?.split("\t")[0];
  });

/**
 * Reads the definition files of a branch at its head or at the commit `sha`. Symbolic links and submodules are not
 * followed. Files outside the layout of a definition are not read, and not fetched if the server supports filters.
 *
 * Errors: as `withGit` and `remoteOutput`; source_unreachable (invalid_argument), if the branch does not exist ·
 * branch_head_gone · definition_invalid, if the tree exceeds its limits.
 */
export async function readGitTree(
  rules: GitRules,
  source: GitSettings,
  credential?: GitCredential,
  sha?: string,
): Promise<Tree> {
  const repository = { url: source.url, credential };
  const isRemote = !source.url.startsWith("/");
  return withGit(rules, repository, (git) => readTree(git, source, sha, isRemote)).catch((error: unknown) => {
    if (error instanceof FilesUnavailable)
      return withGit(rules, repository, (git) => readTree(git, source, sha, false));
    throw error;
  });
}

/** The server omits filtered files and does not serve them one by one. */
class FilesUnavailable extends Error {}

async function readTree(git: Git, source: GitSettings, sha: string | undefined, isFiltered: boolean): Promise<Tree> {
  const revision = await fetchCommit(git, source, sha, isFiltered ? FILTER : []);
  const listing = ok(
    await git.run([
      "ls-tree",
      "-r",
      "-z",
      "--full-tree",
      revision,
      ...(source.directory === "" ? [] : ["--", source.directory]),
    ]),
  );
  const named = definitionEntries(listing, source.directory);
  refuse(treeFault(named.map(() => ({ bytes: 0 })))); // before they are fetched
  if (isFiltered && named.length > 0) await fetchFiles(git, named);
  const entries = await withSizes(git, named);
  refuse(treeFault(entries));
  const contents = ok(
    await git.run(["cat-file", "--batch"], { stdin: linesOf(entries), stdoutBytesMax: CONTENT_BYTES_MAX }),
  );
  return { revision, files: filesOf(entries, contents) };
}

function refuse(fault: ReturnType<typeof treeFault>): void {
  if (fault) throw definitionInvalid([fault]);
}

const FETCH = ["fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"];
/** Ignored by servers without filters, which send all files. */
const FILTER = ["--filter=blob:none"];
const UNAVAILABLE_FILE = /not our ref|unadvertised object/;

async function fetchCommit(
  git: Git,
  { branch }: GitSettings,
  sha: string | undefined,
  filter: readonly string[],
): Promise<string> {
  const what = sha ?? `refs/heads/${branch}`;
  const result = await git.run([...FETCH, ...filter, "--depth=1", "--end-of-options", git.url, `+${what}:${HEAD}`]);
  if (result.exitCode !== 0 && /couldn't find remote ref/.test(result.stderr))
    throw invalidArgument("source_unreachable", `The repository has no branch ${branch}.`);
  if (result.exitCode !== 0 && UNAVAILABLE_FILE.test(result.stderr)) throw headGone();
  remoteOutput(result);
  return ok(await git.run(["rev-parse", "--verify", `${HEAD}^{commit}`]))
    .toString("utf8")
    .trim();
}

type Named = { path: string; oid: string };
type Entry = Named & { bytes: number };

/** Fetches the files that the filter left out. Errors: as `remoteOutput`; FilesUnavailable. */
async function fetchFiles(git: Git, named: readonly Named[]): Promise<void> {
  const result = await git.run(
    ["-c", "fetch.negotiationAlgorithm=noop", ...FETCH, ...FILTER, "--stdin", "--end-of-options", git.url],
    { stdin: linesOf(named) },
  );
  if (result.exitCode !== 0 && UNAVAILABLE_FILE.test(result.stderr)) throw new FilesUnavailable();
  remoteOutput(result);
}

const linesOf = (named: readonly Named[]): string => named.map(({ oid }) => `${oid}\n`).join("");

async function withSizes(git: Git, named: readonly Named[]): Promise<Entry[]> {
  const lines = ok(await git.run(["cat-file", "--batch-check=%(objectsize)"], { stdin: linesOf(named) }))
    .toString("utf8")
    .split("\n");
  return named.map((entry, n) => ({ ...entry, bytes: Number(lines[n]) }));
}

/** Returns the regular files of the layout below `directory` from the output of `ls-tree -z`. */
function definitionEntries(listing: Buffer, directory: string): Named[] {
  const prefix = directory === "" ? "" : `${directory}/`;
  return listing
    .toString("utf8")
    .split("\0")
    .flatMap((line) => {
      const match = /^100\d{3} blob ([0-9a-f]+)\t(.+)$/s.exec(line);
      if (!match?.[1] || !match[2]?.startsWith(prefix)) return [];
      const path = match[2].slice(prefix.length);
      return isDefinitionPath(path) ? [{ path, oid: match[1] }] : [];
    });
}

/**
 * Splits the output of `cat-file --batch`: a line `<oid> blob <bytes>`, the bytes, a line feed; in the order of the
 * input.
 */
function filesOf(entries: readonly Entry[], contents: Buffer): TreeFile[] {
  let offset = 0;
  return entries.map(({ path, bytes }) => {
    const start = contents.indexOf("\n", offset) + 1;
    offset = start + bytes + 1;
    return { path, content: new Uint8Array(contents.subarray(start, start + bytes)) };
  });
}
