import { createHash } from "node:crypto";
import { isPlainPath, TREE_LIMITS, type Diagnostic, type TreeFile } from "@millwright/definition";
import { DomainError, invalidArgument } from "@millwright/errors";
import { canonicalJson } from "@millwright/json";

export type DefinitionFile = { path: string; content: string };

/** Where a factory's definition comes from. */
export type SourceSettings = { kind: "files"; files: DefinitionFile[] } | GitSettings;

/** A git repository. */
export type GitSettings = {
  kind: "git";
  /** https, or the path of a repository below an allowed root. */
  url: string;
  branch: string;
  /** Directory inside the repository; "" = its root. */
  directory: string;
  /** The team's managed secret for reading the repository; https only. */
  secretName?: string;
  /** With the secret; absent: the default of the code host for tokens. */
  username?: string;
};

/** The result of the last apply and the active version. */
export type SourceStatus = {
  state: "NONE" | "APPLYING" | "APPLIED" | "FAILED";
  appliedFingerprint: string | null;
  /** Of the active version. git: commit; files: hash of the tree. */
  appliedRevision: string | null;
  appliedAt: Date | null;
  /** Of the last apply. */
  diagnostics: OwnedDiagnostic[];
};

export type Source = { settings: SourceSettings; status: SourceStatus };

/** A diagnostic of this service or of an owner, whose codes are unknown here. */
export type OwnedDiagnostic = Omit<Diagnostic, "code"> & { code: string };

/** A diagnostic of an owner, with the path of keys to the value in the file. */
export type UnplacedDiagnostic = Omit<OwnedDiagnostic, "line" | "column"> & { keys: readonly string[] };

/** A definition tree as read from its source. */
export type Tree = { revision: string; files: readonly TreeFile[] };

/** Increment it when the same files would be projected differently, so that the next apply is not skipped. */
const PROJECTION = 2;

/** Returns the identity of an apply: an equal fingerprint would apply the same. */
export const fingerprintOf = (settings: SourceSettings, revision: string): string => {
  const place = settings.kind === "git" ? [settings.url, settings.branch, settings.directory] : [];
  return hash([PROJECTION, settings.kind, ...place, revision]);
};

/** Returns the revision of files stored in the service: a hash of paths and contents, in any order. */
export const revisionOf = (files: readonly DefinitionFile[]): string =>
  hash(Object.fromEntries(files.map(({ path, content }) => [path, content])));

const hash = (value: unknown): string => createHash("sha256").update(canonicalJson(value)).digest("hex");

/**
 * Validates a source before it is registered; check and apply validate its definition.
 *
 * Errors: invalid_source, source_too_large (too_large).
 */
export function checkSourceSettings(settings: SourceSettings): SourceSettings {
  if (settings.kind === "files") return { kind: "files", files: checkFiles(settings.files) };
  const { branch } = settings;
  const directory = settings.directory.replace(/^\.?\/+|\/+$/g, "").replace(/^\.$/, "");
  if (directory !== "" && !isPlainPath(directory))
    throw invalidArgument(
      "invalid_source",
      `directory must be a relative path inside the repository (got "${settings.directory.slice(0, 100)}").`,
    );
  checkBranchName(branch);
  const url = checkUrl(settings.url);
  checkCredential(settings);
  return { ...settings, directory, url };
}

function checkCredential({ url, secretName, username }: GitSettings): void {
  if (username !== undefined && secretName === undefined)
    throw invalidArgument("invalid_source", "username requires secret_name.");
  if (secretName === undefined) return;
  if (url.startsWith("/")) throw invalidArgument("invalid_source", "secret_name requires an https repository_url.");
  if (!/^[\w.-]{1,128}$/.test(secretName))
    throw invalidArgument("invalid_source", "secret_name must be the name of a managed secret.");
  if (username !== undefined && !/^[^\p{Cc}:]{1,128}$/u.test(username))
    throw invalidArgument(
      "invalid_source",
      `username must have 1 to 128 characters, without colons (got ${username.length} characters).`,
    );
}

/** Errors: invalid_source. */
export function checkBranchName(name: string): string {
  if (!isBranchName(name))
    throw invalidArgument("invalid_source", `branch must be a valid branch name (got "${name.slice(0, 100)}").`);
  return name;
}

function checkUrl(url: string): string {
  if (url.startsWith("/") && !url.includes("\0")) return url;
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== "https:")
    throw invalidArgument(
      "invalid_source",
      "repository_url must be an https URL, or the path of a repository on this server.",
    );
  if (parsed.username !== "" || parsed.password !== "")
    throw invalidArgument("invalid_source", "repository_url must not contain credentials.");
  return parsed.href;
}

/** Slightly stricter than `git check-ref-format --branch`. */
const isBranchName = (name: string): boolean =>
  /^[A-Za-z0-9_][A-Za-z0-9._/+@#-]*$/.test(name) &&
  name.length <= 255 &&
  !/\.\.|\/\/|@\{|\/\.|\.lock(\/|$)|[./]$/.test(name) &&
  name !== "HEAD";

function checkFiles(files: readonly DefinitionFile[]): DefinitionFile[] {
  const sizes = files.map(({ content }) => Buffer.byteLength(content));
  const { filesMax, fileBytesMax, treeBytesMax } = TREE_LIMITS;
  if (
    files.length > filesMax ||
    sizes.some((size) => size > fileBytesMax) ||
    sizes.reduce((a, b) => a + b, 0) > treeBytesMax
  ) {
    const message = "A definition must have at most 2,000 files, of at most 2 MiB each and 20 MiB in total.";
    throw new DomainError({ kind: "too_large", reason: "source_too_large", message });
  }
  const paths = new Set(files.map(({ path }) => path));
  if (paths.size < files.length || ![...paths].every(isPlainPath)) {
    throw invalidArgument("invalid_source", "files must have distinct relative paths without empty, . or .. segments.");
  }
  if (files.some(({ path, content }) => `${path}${content}`.includes("\0")))
    throw invalidArgument("invalid_source", "files must be text without NUL characters.");
  return files.map(({ path, content }) => ({ path, content }));
}

export const sourceMissing = (): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "source_missing",
    message: "The factory has no definition source. Put files or set a repository first.",
  });

/** Returns the error of an invalid definition, with all its diagnostics as details. */
export const definitionInvalid = (diagnostics: readonly OwnedDiagnostic[]): DomainError => {
  const count = diagnostics.filter(({ severity }) => severity === "error").length;
  const message = `The definition has ${count === 1 ? "one error" : `${count} errors`}; the active version is unchanged.`;
  return new DomainError({ kind: "invalid_argument", reason: "definition_invalid", message, details: diagnostics });
};

export const hasErrors = (diagnostics: readonly OwnedDiagnostic[]): boolean =>
  diagnostics.some(({ severity }) => severity === "error");
