import { mkdtemp, readdir, realpath, rm, stat, writeFile } from "node:fs/promises";
import { isIP } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve, sep } from "node:path";
import { DomainError, invalidArgument } from "@millwright/errors";
import { refusalIn, type OutboundRule } from "@millwright/outbound";
import { runGit, type GitCommand, type GitResult } from "./run-git.ts";

export type GitRules = {
  /** Directories that may contain local repositories; with none, local paths are refused. */
  localRepositoryRoots: readonly string[];
  outbound: OutboundRule;
  /** Limit of one command. */
  timeoutMs: number;
  /** A PEM file with additional certificate authorities for repository hosts. */
  caFile?: string;
  /** Largest file that git may write, so that a huge repository cannot fill the disk. */
  fileBytesMax: number;
};

/** The credential for a repository, such as a user name and a token. */
export type GitCredential = { username: string; password: string };

export type Repository = { url: string; credential?: GitCredential };

const PREFIX = "millwright-definition-";
/** Older directories belong to no running call. */
const LEFTOVER_MS = 3_600_000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;

/** Errors: repository_not_allowed, for a path outside the allowed roots · internal_address_refused. */
export function checkRepository({ localRepositoryRoots, outbound }: GitRules, url: string): void {
  if (!isLocal(url) && outbound.refuses(new URL(url).hostname)) throw internal();
  if (isLocal(url) && !localRepositoryRoots.some((root) => isBelow(resolve(root), resolve(url)))) throw notAllowed();
}

export type Git = {
  /** The URL or path that is passed to git. */
  url: string;
  run(args: readonly string[], more?: Pick<Partial<GitCommand>, "stdin" | "stdoutBytesMax">): Promise<GitResult>;
};

/**
 * Runs `f` with git in an empty temporary repository, which is deleted afterwards. Git can reach only the given
 * repository over one transport, follows no redirects, and gets the credential through its environment, not through an
 * argument or a file.
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
        throw unreachable("The repository could not be read: git is not installed.", cause);
      });
    ok(await run(["init", "--quiet", "--bare"]));
    return await f({ url, run });
  } finally {
    await rm(gitDir, { recursive: true, force: true });
  }
}

/** Removes directories of processes that were killed. */
export async function removeLeftovers(): Promise<void> {
  for (const name of (await readdir(tmpdir())).filter((entry) => entry.startsWith(PREFIX))) {
    const path = join(tmpdir(), name);
    const changed = await stat(path).catch(() => undefined);
    if (changed && Date.now() - changed.mtimeMs > LEFTOVER_MS) await rm(path, { recursive: true, force: true });
  }
}

const [USERNAME, PASSWORD] = ["MILLWRIGHT_GIT_USERNAME", "MILLWRIGHT_GIT_PASSWORD"] as const;

/**
 * The operator allowed the root, so the repository may belong to another user. Redirects could leave the allowed host
 * with the credential.
 */
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
    "\tbigFileThreshold = 1m", // large files are streamed
    ...(hasCredential
      ? [`[credential ${JSON.stringify(new URL(url).origin)}]`, `\thelper = ${JSON.stringify(helper)}`]
      : []),
    "",
  ].join("\n");
}

/** Pins the addresses that were checked, so that a changed DNS record has no effect. */
async function pinned({ outbound }: GitRules, url: string): Promise<string[]> {
  if (isLocal(url)) return [];
  const { hostname, port } = new URL(url);
  const addresses = await outbound.addressesOf(hostname).catch((error: unknown) => {
    throw refusalIn(error) ? internal() : unreachable("The repository's host could not be resolved.", error);
  });
  if (isIP(hostname.replace(/^\[|\]$/g, "")) !== 0) return [];
  return [
    `\tcurloptResolve = ${hostname}:${port || "443"}:${addresses.map((address) => (isIP(address) === 6 ? `[${address}]` : address)).join(",")}`,
  ];
}

/** Returns the real path of a local repository, which must also be below a root. */
async function localRepository({ localRepositoryRoots }: GitRules, path: string): Promise<string> {
  const real = await realpath(path).catch(() => undefined);
  if (real === undefined) throw invalidArgument("source_unreachable", "There is no git repository at this path.");
  const roots = await Promise.all(localRepositoryRoots.map((root) => realpath(root).catch(() => undefined)));
  if (!roots.some((root) => root !== undefined && isBelow(root, real))) throw notAllowed();
  return real;
}

/** Returns whether a URL is a path on this server that does not exist. */
export const isAbsentHere = async (url: string): Promise<boolean> =>
  isLocal(url) && (await stat(url).catch(() => undefined)) === undefined;

const isLocal = (url: string): boolean => url.startsWith("/");
const isBelow = (root: string, path: string): boolean => path.startsWith(root.endsWith(sep) ? root : `${root}${sep}`);

/** Returns the output of a local command that must succeed. Errors: source_unreachable. */
export function ok({ exitCode, stdout, stderr }: GitResult): Buffer {
  if (exitCode === 0) return stdout;
  throw unreachable(
    "The repository could not be read. Check its address, and its credential in secret_name.",
    new Error(`git: ${stderr || "killed, or out of time"}`),
  );
}

/**
 * Returns the output of a command that contacted the repository, or throws the meaning of its error output. What only
 * the repository's owner can change is reported to the caller; what may be temporary is source_unreachable.
 *
 * Errors: source_unreachable · source_refused · source_too_large (all but source_unreachable: invalid_argument).
 */
export function remoteOutput(result: GitResult): Buffer {
  const { exitCode, stderr, stdout, isOutOfTime } = result;
  if (exitCode === 0) return stdout;
  const cause = new Error(`git: ${stderr || "killed, or out of time"}`);
  const fault = isOutOfTime ? undefined : FAULTS.find(({ sign }) => sign.test(stderr));
  if (fault) throw new DomainError({ kind: "invalid_argument", reason: fault.reason, message: fault.message, cause });
  throw unreachable(
    isOutOfTime
      ? "Timed out while reading the repository."
      : "The repository could not be fetched. Check its address, and its credential in secret_name.",
    cause,
  );
}

const REFUSED = "The repository rejected the credentials; set or replace the source's secret.";
const FAULTS: readonly { sign: RegExp; reason: string; message: string }[] = [
  {
    sign: /Authentication failed|could not read (?:Username|Password)|returned error: 40[13]/,
    reason: "source_refused",
    message: REFUSED,
  },
  {
    sign: /returned error: 3\d\d|redirect/,
    reason: "source_redirected",
    message: "The repository has moved: use its new address. Redirects are not followed.",
  },
  {
    sign: /repository '.*' not found|does not appear to be a git repository|returned error: 404/,
    reason: "source_unreachable",
    message: "No repository found at this address.",
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
    "The repository is in an internal network; an operator can allow its host (MILLWRIGHT_ALLOWED_INTERNAL_HOSTS).",
  );
const notAllowed = (): DomainError =>
  invalidArgument(
    "repository_not_allowed",
    "The path is outside the directories in which local repositories are allowed (MILLWRIGHT_LOCAL_REPOSITORY_ROOTS).",
  );
