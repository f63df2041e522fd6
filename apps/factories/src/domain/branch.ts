import { DomainError, invalidArgument, isDomainError } from "@millwright/errors";
import type { FactoryUid, TeamUid } from "@millwright/ids";
import { fingerprintOf, type OwnedDiagnostic, type Source } from "./source.ts";

/** Why an apply or a poll failed. Codes are those of public problems. */
export type BranchError = { code: string; message: string; diagnostics: readonly OwnedDiagnostic[] };

/** A branch of the source's repository whose head is polled. */
export type TrackedBranch = {
  uid: string;
  factoryUid: FactoryUid;
  teamUid: TeamUid;
  repositoryUrl: string;
  name: string;
  /** The branch that the source names; there is one while the source is a repository. */
  isProduction: boolean;
  /** Of its last apply. */
  state: "ACTIVE" | "APPLYING" | "FAILED";
  registeredHeadSha: string | null;
  appliedSha: string | null;
  appliedFingerprint: string | null;
  lastAppliedAt: Date | null;
  lastCheckedAt: Date | null;
  applyError: BranchError | null;
  pollError: BranchError | null;
  version: number;
  createdAt: Date;
  updatedAt: Date;
  /** Tracking has ended; tracking the branch again creates a new one. */
  deletedAt: Date | null;
};

/** Kind of the work for a push. Its payload: `{deliveryUid, teamUid}`. */
export const REGISTER_PUSH = "branch.register-push";

/** Tracked branches per factory: each is polled. */
export const BRANCHES_MAX = 50;
/** How long a deleted branch can be read before it is pruned. */
export const RETIRED_DAYS = 30;

export type Freshness = "CURRENT" | "STALE" | "UNKNOWN";

/** Errors that mean that the repository could not be read, so its head is unknown. */
const UNREAD: ReadonlySet<string> = new Set([
  "source_unreachable",
  "source_refused",
  "source_redirected",
  "repository_not_allowed",
  "internal_address_refused",
  "secret_missing",
  "secret_malformed",
]);
export const isUnread = ({ code }: BranchError): boolean => UNREAD.has(code);

/**
 * Compares the applied head with the registered one; UNKNOWN if the head cannot be known, as of a missing repository.
 */
export function freshnessOf(branch: TrackedBranch, source: Source | undefined, isMissing: boolean): Freshness {
  const head = branch.registeredHeadSha;
  if (isMissing || branch.deletedAt || head === null || branch.pollError || source?.settings.kind !== "git")
    return "UNKNOWN";
  return branch.appliedFingerprint === fingerprintOf({ ...source.settings, branch: branch.name }, head)
    ? "CURRENT"
    : "STALE";
}

export type BranchRepository = {
  owner: string;
  repo: string;
  codeForge: "GITHUB" | "GITLAB" | "AZURE_DEVOPS" | "NONE";
};

/** Returns owner, name and code host of a repository's URL; NONE for a path or an unknown host. */
export function repositoryOf(url: string): BranchRepository {
  const isLocal = url.startsWith("/");
  const { hostname, pathname } = isLocal ? { hostname: "", pathname: url } : new URL(url);
  const parts = decoded(pathname)
    .split("/")
    .filter((part) => part !== "" && part !== ".git" && part !== "_git");
  const repo = (parts.at(-1) ?? "").replace(/\.git$/, "");
  const owner = isLocal ? (parts.at(-2) ?? "") : parts.slice(0, -1).join("/");
  return { owner, repo, codeForge: FORGES.find(([host]) => host.test(hostname))?.[1] ?? "NONE" };
}

const FORGES = [
  [/(^|\.)github\./, "GITHUB"],
  [/(^|\.)gitlab\./, "GITLAB"],
  [/(^|\.)(dev\.azure\.com|visualstudio\.com)$/, "AZURE_DEVOPS"],
] as const;

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Returns what is stored of an error: only its public text. */
export const branchErrorOf = (error: unknown): BranchError =>
  isDomainError(error)
    ? {
        code: error.reason,
        message: error.message,
        diagnostics:
          error.reason === "definition_invalid"
            ? (error.details as OwnedDiagnostic[]).filter(({ severity }) => severity === "error")
            : [],
      }
    : { code: "internal_error", message: "An internal error occurred; see the service's log.", diagnostics: [] };

/** Returns the error to throw for a stored one. */
export const problemOf = ({ code, message }: BranchError): DomainError =>
  new DomainError({
    kind: code === "source_unreachable" || code === "internal_error" ? "unavailable" : "invalid_argument",
    reason: code,
    message,
  });

const conflict = (reason: string, message: string, retryable = false): DomainError =>
  new DomainError({ kind: "conflict", reason, message, retryable });

export const branchDeleted = (): DomainError =>
  conflict("branch_deleted", "This branch is no longer tracked. Track it again to get a new branch_uid.");
export const productionBranch = (): DomainError =>
  conflict("production_branch", "The factory's definition comes from this branch. Set another source first.");
export const headUnknown = (): DomainError =>
  conflict("branch_head_unknown", "The repository has no such branch. Push it, then retry.");
export const headGone = (): DomainError =>
  conflict(
    "branch_head_gone",
    "The repository no longer has the registered head. Retry after its new head is registered.",
    true,
  );
export const noRepository = (): DomainError =>
  conflict(
    "source_not_git",
    "Tracked branches require a factory with a git source. Set a repository as its source first.",
  );
export const tooManyBranches = (): DomainError =>
  invalidArgument("too_many_branches", `A factory can track at most ${BRANCHES_MAX} branches. Untrack one first.`);
