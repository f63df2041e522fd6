import { isDefinitionPath, treeFault, type TreeFile } from "@millwright/definition";
import { invalidArgument } from "@millwright/errors";
import { headGone } from "../domain/branch.ts";
import { definitionInvalid, type GitSettings, type Tree } from "../domain/source.ts";
import { answered, ok, withGit, type Git, type GitCredential, type GitRules } from "./git-repository.ts";

const CONTENT_BYTES_MAX = 24 * 1024 * 1024;
const HEADS_BYTES_MAX = 64 * 1024;
const HEAD = "refs/millwright/head";

/** The commit that the branch is at; undefined: the repository has no such branch. Errors: as `withGit` and `answered`. */
export const readGitHead = (rules: GitRules, source: GitSettings, credential: GitCredential | undefined): Promise<string | undefined> =>
  withGit(rules, { url: source.url, ...(credential && { credential }) }, async (git) => {
    const ref = `refs/heads/${source.branch}`;
    const heads = answered(await git.run(["ls-remote", "--quiet", "--refs", "--end-of-options", git.url, ref], { stdoutBytesMax: HEADS_BYTES_MAX }));
    const line = heads.toString("utf8").split("\n").find((one) => one.endsWith(`\t${ref}`));
    return line?.split("\t")[0];
  });

/**
 * The definition files of a branch, at its head or at the commit `sha`. Symbolic links and submodules are not followed; files
 * outside the layout of a definition are not read.
 *
 * Errors: as `withGit` and `answered`; source_unreachable (invalid_argument), when there is no such branch · branch_head_gone
 *   · definition_invalid, when the tree is beyond its bounds.
 */
export const readGitTree = (rules: GitRules, source: GitSettings, credential?: GitCredential, sha?: string): Promise<Tree> =>
  withGit(rules, { url: source.url, ...(credential && { credential }) }, async (git) => {
    const revision = await fetchCommit(git, source, sha);
    const listing = ok(await git.run(["ls-tree", "-r", "-z", "--long", "--full-tree", revision, ...(source.directory === "" ? [] : ["--", source.directory])]));
    const entries = definitionEntries(listing, source.directory);
    const fault = treeFault(entries);
    if (fault) throw definitionInvalid([fault]);
    const contents = ok(await git.run(["cat-file", "--batch"], { stdin: entries.map(({ oid }) => `${oid}\n`).join(""), stdoutBytesMax: CONTENT_BYTES_MAX }));
    return { revision, files: filesOf(entries, contents) };
  });

async function fetchCommit(git: Git, { branch }: GitSettings, sha: string | undefined): Promise<string> {
  const what = sha ?? `refs/heads/${branch}`;
  const fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"];
  const result = await git.run([...fetch, "--end-of-options", git.url, `+${what}:${HEAD}`]);
  if (result.exitCode !== 0 && /couldn't find remote ref/.test(result.complaint)) throw invalidArgument("source_unreachable", `The repository has no branch ${branch}.`);
  if (result.exitCode !== 0 && /not our ref|unadvertised object/.test(result.complaint)) throw headGone();
  answered(result);
  return ok(await git.run(["rev-parse", "--verify", `${HEAD}^{commit}`])).toString("utf8").trim();
}

type Entry = { path: string; oid: string; bytes: number };

/** Regular files of the layout below `directory`, out of `ls-tree -z --long`. */
function definitionEntries(listing: Buffer, directory: string): Entry[] {
  const prefix = directory === "" ? "" : `${directory}/`;
  return listing.toString("utf8").split("\0").flatMap((line) => {
    const match = /^100\d{3} blob ([0-9a-f]+) +(\d+)\t(.+)$/s.exec(line);
    if (!match?.[1] || !match[3]?.startsWith(prefix)) return [];
    const path = match[3].slice(prefix.length);
    return isDefinitionPath(path) ? [{ path, oid: match[1], bytes: Number(match[2]) }] : [];
  });
}

/** Splits the answer of `cat-file --batch`: a line `<oid> blob <bytes>`, the bytes, a line feed; in the order asked. */
function filesOf(entries: readonly Entry[], contents: Buffer): TreeFile[] {
  let offset = 0;
  return entries.map(({ path, bytes }) => {
    const start = contents.indexOf("\n", offset) + 1;
    offset = start + bytes + 1;
    return { path, content: new Uint8Array(contents.subarray(start, start + bytes)) };
  });
}
