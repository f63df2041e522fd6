import { DomainError, invalidArgument, isDomainError } from "@millwright/errors";
import type { FactoryUid, TeamUid } from "@millwright/ids";
import { fingerprintOf, type OwnedDiagnostic, type Source } from "./source.ts";

/** Why an apply, or a look for a head, came to nothing. Codes are those of our problems. */
export type BranchError = { code: string; message: string; diagnostics: readonly OwnedDiagnostic[] };

/** A branch of the source's repository whose head is kept an eye on. Source: API spec §3, fields-factory §4. */
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
  checkError: BranchError | null;
  version: number;
  createdAt: Date;
  updatedAt: Date;
  /** Tracking was retired; such an identity never lives again. */
  deletedAt: Date | null;
};

/** Kind of the work that a push leaves. Its payload: `{deliveryUid, teamUid}`. */
export const REGISTER_PUSH = "branch.register-push";

/** Tracked at once by one factory: each is looked up again and again. */
export const BRANCHES_MAX = 50;
/** How long a retired identity can be read before it is forgotten. */
export const RETIRED_DAYS = 30;

export type Freshness = "CURRENT" | "STALE" | "UNKNOWN";

/** Failures that mean that the repository could not be read, so that its head is not known now. */
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

/** How what was applied compares with the registered head; UNKNOWN when the head cannot be known now, as of a repository that is missing. */
export function freshnessOf(branch: TrackedBranch, source: Source | undefined, isMissing: boolean): Freshness {
  const head = branch.registeredHeadSha;
  if (isMissing || branch.deletedAt || head === null || branch.checkError || source?.settings.kind !== "git")
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

/** Owner, name and code host as the address of a repository tells them; a path, or a host that we do not know, is NONE. */
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

/** What is kept of a failure: never more than its public text. */
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
    : { code: "internal_error", message: "Something went wrong on this side; it is in the log.", diagnostics: [] };

/** The same as an answer. */
export const problemOf = ({ code, message }: BranchError): DomainError =>
  new DomainError({
    kind: code === "source_unreachable" || code === "internal_error" ? "unavailable" : "invalid_argument",
    reason: code,
    message,
  });

const conflict = (reason: string, message: string, retryable = false): DomainError =>
  new DomainError({ kind: "conflict", reason, message, retryable });

export const branchDeleted = (): DomainError =>
  conflict("branch_deleted", "This branch is not tracked any more; its identity does not come back.");
export const productionBranch = (): DomainError =>
  conflict("production_branch", "The factory's definition comes from this branch: name another source first.");
export const headUnknown = (): DomainError =>
  conflict("branch_head_unknown", "No head of this branch is registered: the repository has no such branch.");
export const headGone = (): DomainError =>
  conflict(
    "branch_head_gone",
    "The repository does not have the registered head any more; its new head is registered soon.",
    true,
  );
export const noRepository = (): DomainError =>
  conflict("source_not_git", "Only a factory whose source is a git repository has branches.");
export const tooManyBranches = (): DomainError =>
  invalidArgument("too_many_branches", `A factory tracks at most ${BRANCHES_MAX} branches.`);
