import { mkdtemp, realpath, rm, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve, sep } from "node:path";
import { isDefinitionPath, treeFault, type TreeFile } from "@millwright/definition";
import { DomainError, invalidArgument } from "@millwright/errors";
import { refusalIn, type OutboundRule } from "@millwright/outbound";
import { definitionInvalid, type SourceSettings, type Tree } from "../domain/source.ts";
import { runGit, type GitCommand, type GitResult } from "./run-git.ts";

export type GitSource = Extract<SourceSettings, { kind: "git" }>;
export type GitSettings = {
  /** Directories below which local repositories may lie; none: local paths are refused. */
  localRepositoryRoots: readonly string[];
  outbound: OutboundRule;
  /** Of one fetch. */
  timeoutMs: number;
};

const LISTING_BYTES_MAX = 64 * 1024 * 1024;
const CONTENT_BYTES_MAX = 24 * 1024 * 1024;

/** Errors: repository_not_allowed, for a path that lies below no allowed root · internal_address_refused. */
export function checkRepository({ localRepositoryRoots, outbound }: GitSettings, url: string): void {
  if (!isLocal(url) && outbound.refuses(new URL(url).hostname)) throw internal();
  if (isLocal(url) && !localRepositoryRoots.some((root) => isBelow(resolve(root), resolve(url)))) throw notAllowed();
}

/**
 * The definition files at the head of a branch, fetched into a directory that lives as long as the call. Symbolic links and
 * submodules are not followed; files outside the layout of a definition are not read.
 *
 * Errors: source_unreachable · repository_not_allowed · internal_address_refused · definition_invalid, when the tree is beyond its bounds.
 */
export async function readGitTree(settings: GitSettings, source: GitSource): Promise<Tree> {
  checkRepository(settings, source.url);
  const url = isLocal(source.url) ? await localRepository(settings, source.url) : source.url;
  const gitDir = await mkdtemp(join(tmpdir(), "millwright-definition-"));
  try {
    const configFile = join(gitDir, "millwright.config");
    // The operator allowed the root; the repository may be another user's. Redirects could lead past what was allowed.
    await writeFile(configFile, `[safe]\n\tdirectory = ${JSON.stringify(url)}\n[http]\n\tfollowRedirects = false\n${await pinned(settings, url)}[core]\n\thooksPath = /dev/null\n`);
    const base = { gitDir, configFile, protocol: isLocal(url) ? "file" : "https", timeoutMs: settings.timeoutMs, stdoutBytesMax: LISTING_BYTES_MAX };
    const git = (args: readonly string[], more: Partial<GitCommand> = {}) => runGit({ ...base, ...more, args }).catch((cause: unknown) => {
      throw unreachable("The repository could not be read: git is not available.", cause);
    });
    ok(await git(["init", "--quiet", "--bare"]));
    const fetch = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head"];
    fetched(await git([...fetch, "--end-of-options", url, `+refs/heads/${source.branch}:refs/millwright/head`]), source.branch);
    const revision = ok(await git(["rev-parse", "--verify", "refs/millwright/head^{commit}"])).toString("utf8").trim();
    const entries = definitionEntries(ok(await git(["ls-tree", "-r", "-z", "--long", "--full-tree", revision])), source.directory);
    const fault = treeFault(entries);
    if (fault) throw definitionInvalid([fault]);
    const contents = ok(await git(["cat-file", "--batch"], { stdin: entries.map(({ oid }) => `${oid}\n`).join(""), stdoutBytesMax: CONTENT_BYTES_MAX }));
    return { revision, files: filesOf(entries, contents) };
  } finally {
    await rm(gitDir, { recursive: true, force: true });
  }
}

/** Has git connect to the addresses that were judged, whatever the name leads to a moment later. */
async function pinned({ outbound }: GitSettings, url: string): Promise<string> {
  if (isLocal(url)) return "";
  const { hostname, port } = new URL(url);
  const addresses = await outbound.addressesOf(hostname).catch((error: unknown) => {
    throw refusalIn(error) ? internal() : unreachable("The repository's host is not known.", error);
  });
  return isIP(hostname.replace(/^\[|\]$/g, "")) === 0 ? `\tcurloptResolve = ${hostname}:${port || "443"}:${addresses.map((one) => (isIP(one) === 6 ? `[${one}]` : one)).join(",")}\n` : "";
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

/** The real place of a local repository, which must lie below a root as well. */
async function localRepository({ localRepositoryRoots }: GitSettings, path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) throw invalidArgument("source_unreachable", "There is no repository at this path.");
  const roots = await Promise.all(localRepositoryRoots.map((root) => realpath(root).catch(() => undefined)));
  if (!roots.some((root) => root !== undefined && isBelow(root, real))) throw notAllowed();
  return real;
}

const isLocal = (url: string): boolean => url.startsWith("/");
const isBelow = (root: string, path: string): boolean => path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);

function fetched(result: GitResult, branch: string): void {
  if (result.exitCode === 0) return;
  if (/couldn't find remote ref/.test(result.complaint)) throw invalidArgument("source_unreachable", `The repository has no branch ${branch}.`);
  throw unreachable("The repository could not be fetched.", new Error(`git: ${result.complaint || "out of time"}`));
}

function ok({ exitCode, stdout, complaint }: GitResult): Buffer {
  if (exitCode === 0) return stdout;
  throw unreachable("The repository could not be read.", new Error(`git: ${complaint || "killed, or out of time"}`));
}

const unreachable = (message: string, cause: unknown): DomainError =>
  new DomainError({ kind: "unavailable", reason: "source_unreachable", message, cause });
const internal = (): DomainError =>
  invalidArgument("internal_address_refused", "The repository is inside the network of this platform; its operator can allow it (MILLWRIGHT_ALLOWED_INTERNAL_HOSTS).");
const notAllowed = (): DomainError =>
  invalidArgument("repository_not_allowed", "Repositories of this server's disk are allowed below configured directories only; this path is not.");
