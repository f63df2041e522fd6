import { mkdtemp, readdir, realpath, rm, stat, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve, sep } from "node:path";
import { DomainError, invalidArgument } from "@millwright/errors";
import { refusalIn, type OutboundRule } from "@millwright/outbound";
import { runGit, type GitCommand, type GitResult } from "./run-git.ts";

export type GitRules = {
  /** Directories below which local repositories may lie; none: local paths are refused. */
  localRepositoryRoots: readonly string[];
  outbound: OutboundRule;
  /** Of one command. */
  timeoutMs: number;
  /** A file with further certificate authorities that repositories' hosts may have (PEM). */
  caFile?: string;
  /** Of any one file that git writes: a repository of giants ends there, not when the disk is full. */
  fileBytesMax: number;
};

/** Who git is to the repository; a user name and a token, say. */
export type GitCredential = { username: string; password: string };

export type Repository = { url: string; credential?: GitCredential };

const PREFIX = "millwright-definition-";
/** No call takes that long. */
const LEFTOVER_MS = 3_600_000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** Errors: repository_not_allowed, for a path that lies below no allowed root · internal_address_refused. */
export function checkRepository({ localRepositoryRoots, outbound }: GitRules, url: string): void {
  if (!isLocal(url) && outbound.refuses(new URL(url).hostname)) throw internal();
  if (isLocal(url) && !localRepositoryRoots.some((root) => isBelow(resolve(root), resolve(url)))) throw notAllowed();
}

export type Git = {
  /** Where the repository is, as git is told. */
  url: string;
  run(args: readonly string[], more?: Pick<Partial<GitCommand>, "stdin" | "stdoutBytesMax">): Promise<GitResult>;
};

/**
 * Lets `f` work with git in an empty repository of our own, which lives as long as the call. Git reaches the one repository over
 * its one transport, follows no redirect, and gets a credential through its environment: none is in an argument or on the disk.
 *
 * Errors: source_unreachable · repository_not_allowed · internal_address_refused.
 */
export async function withGit<T>(
  rules: GitRules,
  { url: given, credential }: Repository,
  f: (git: Git) => Promise<T>,
): Promise<T> {
  checkRepository(rules, given);
  const url = isLocal(given) ? await localRepository(rules, given) : given;
  const gitDir = await mkdtemp(join(tmpdir(), `${PREFIX}${process.pid}-`));
  try {
    const configFile = join(gitDir, "millwright.config");
    await writeFile(configFile, await configuration(rules, url, credential !== undefined));
    const base = {
      gitDir,
      configFile,
      protocol: isLocal(url) ? "file" : "https",
      timeoutMs: rules.timeoutMs,
      stdoutBytesMax: OUTPUT_BYTES_MAX,
      fileBytesMax: rules.fileBytesMax,
    };
    const environment = {
      ...(rules.caFile && { GIT_SSL_CAINFO: rules.caFile }),
      ...(credential && { [USERNAME]: credential.username, [PASSWORD]: credential.password }),
    };
    const run: Git["run"] = (args, more = {}) =>
      runGit({ ...base, environment, ...more, args }).catch((cause: unknown) => {
        throw unreachable("The repository could not be read: git is not available.", cause);
      });
    ok(await run(["init", "--quiet", "--bare"]));
    return await f({ url, run });
  } finally {
    await rm(gitDir, { recursive: true, force: true });
  }
}

/** Removes what processes have left that were killed while they worked. */
export async function removeLeftovers(): Promise<void> {
  for (const name of (await readdir(tmpdir())).filter((one) => one.startsWith(PREFIX))) {
    const path = join(tmpdir(), name);
    const changed = await stat(path).catch(() => undefined);
    if (changed && Date.now() - changed.mtimeMs > LEFTOVER_MS) await rm(path, { recursive: true, force: true });
  }
}

const [USERNAME, PASSWORD] = ["MILLWRIGHT_GIT_USERNAME", "MILLWRIGHT_GIT_PASSWORD"] as const;

/** The operator allowed the root; the repository may be another user's. Redirects could lead past what was allowed, and take a credential along. */
async function configuration(rules: GitRules, url: string, hasCredential: boolean): Promise<string> {
  const helper = `!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$${USERNAME}" "$${PASSWORD}"; }; f`;
  return [
    "[safe]",
    `\tdirectory = ${JSON.stringify(url)}`,
    "[http]",
    "\tfollowRedirects = false",
    ...(await pinned(rules, url)),
    "[core]",
    "\thooksPath = /dev/null",
    "\tbigFileThreshold = 1m", // large files are streamed, not held
    ...(hasCredential
      ? [`[credential ${JSON.stringify(new URL(url).origin)}]`, `\thelper = ${JSON.stringify(helper)}`]
      : []),
    "",
  ].join("\n");
}

/** Has git connect to the addresses that were judged, whatever the name leads to a moment later. */
async function pinned({ outbound }: GitRules, url: string): Promise<string[]> {
  if (isLocal(url)) return [];
  const { hostname, port } = new URL(url);
  const addresses = await outbound.addressesOf(hostname).catch((error: unknown) => {
    throw refusalIn(error) ? internal() : unreachable("The repository's host is not known.", error);
  });
  if (isIP(hostname.replace(/^\[|\]$/g, "")) !== 0) return [];
  return [
    `\tcurloptResolve = ${hostname}:${port || "443"}:${addresses.map((one) => (isIP(one) === 6 ? `[${one}]` : one)).join(",")}`,
  ];
}

/** The real place of a local repository, which must lie below a root as well. */
async function localRepository({ localRepositoryRoots }: GitRules, path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) throw invalidArgument("source_unreachable", "There is no repository at this path.");
  const roots = await Promise.all(localRepositoryRoots.map((root) => realpath(root).catch(() => undefined)));
  if (!roots.some((root) => root !== undefined && isBelow(root, real))) throw notAllowed();
  return real;
}

/** Whether a URL names a directory of this server's disk that does not exist. */
export const isAbsentHere = async (url: string): Promise<boolean> =>
  isLocal(url) && (await stat(url).catch(() => undefined)) === undefined;

const isLocal = (url: string): boolean => url.startsWith("/");
const isBelow = (root: string, path: string): boolean => path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);

/** The output of a command that must succeed. Errors: source_unreachable. */
export function ok({ exitCode, stdout, complaint }: GitResult): Buffer {
  if (exitCode === 0) return stdout;
  throw unreachable("The repository could not be read.", new Error(`git: ${complaint || "killed, or out of time"}`));
}

/**
 * The output of a command that asked the repository, or what its complaint means. What only the repository or its people can
 * change is said to the caller; what may pass is source_unreachable.
 *
 * Errors: source_unreachable · source_refused · source_too_large (all but source_unreachable: invalid_argument).
 */
export function answered(result: GitResult): Buffer {
  const { exitCode, complaint, stdout, isOutOfTime } = result;
  if (exitCode === 0) return stdout;
  const cause = new Error(`git: ${complaint || "killed, or out of time"}`);
  const fault = isOutOfTime ? undefined : FAULTS.find(({ sign }) => sign.test(complaint));
  if (fault) throw new DomainError({ kind: "invalid_argument", reason: fault.reason, message: fault.message, cause });
  throw unreachable(
    isOutOfTime ? "The repository did not answer in time." : "The repository could not be fetched.",
    cause,
  );
}

const REFUSED = "The repository refused to be read: it wants other credentials.";
const FAULTS: readonly { sign: RegExp; reason: string; message: string }[] = [
  {
    sign: /Authentication failed|could not read (?:Username|Password)|returned error: 40[13]/,
    reason: "source_refused",
    message: REFUSED,
  },
  {
    sign: /returned error: 3\d\d|redirect/,
    reason: "source_redirected",
    message: "The repository is at another address: register that one. Redirects are not followed.",
  },
  {
    sign: /repository '.*' not found|does not appear to be a git repository|returned error: 404/,
    reason: "source_unreachable",
    message: "There is no repository at this address.",
  },
  {
    sign: /died of signal (?:25|31)\b|File too large/,
    reason: "source_too_large",
    message: "The repository's files are too large to be fetched.",
  },
];

export const unreachable = (message: string, cause: unknown): DomainError =>
  new DomainError({ kind: "unavailable", reason: "source_unreachable", message, cause });
const internal = (): DomainError =>
  invalidArgument(
    "internal_address_refused",
    "The repository is inside the network of this platform; its operator can allow it (MILLWRIGHT_ALLOWED_INTERNAL_HOSTS).",
  );
const notAllowed = (): DomainError =>
  invalidArgument(
    "repository_not_allowed",
    "Repositories of this server's disk are allowed below configured directories only; this path is not.",
  );
