import { invalidArgument } from "@millwright/errors";
import type { Repository } from "./code-host.ts";

const NAME = /^(?!-|\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;

/** Whether a text can be the owner or the name of a repository; such a text is harmless as one segment of a path or URL. */
export const isRepositoryName = (text: string): boolean =>
  NAME.test(text) && !text.endsWith(".git") && !text.endsWith(".lock");

/** Whether a text is a full commit id (SHA-1 or SHA-256), in lower case. */
export const isSha = (text: string): boolean => /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);

/** Control characters, space and ~ ^ : ? * [ \ */
// oxlint-disable-next-line no-control-regex -- they are what is looked for
const FORBIDDEN = /[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\//;

/** Whether git accepts a text as a branch name (git-check-ref-format), and it cannot be taken for an option. */
export function isBranchName(text: string): boolean {
  if (text === "" || text === "@" || text === "HEAD" || text.length > 250 || FORBIDDEN.test(text)) return false;
  if (/^[-/]|[./]$/.test(text)) return false;
  return text.split("/").every((part) => !part.startsWith(".") && !part.endsWith(".lock"));
}

/** Errors: repository_invalid. */
export function checkRepository(repository: Repository): Repository {
  if (isRepositoryName(repository.owner) && isRepositoryName(repository.repo)) return repository;
  throw invalidArgument("repository_invalid", "A repository is named owner/repo.");
}

/** A project below groups, `group/…/project`. Errors: repository_invalid. */
export function checkProject({ owner, repo }: Repository): string {
  if (owner.split("/").every(isRepositoryName) && isRepositoryName(repo)) return `${owner}/${repo}`;
  throw invalidArgument("repository_invalid", "A project is named group/project, or group/subgroup/project.");
}

/** Errors: branch_invalid. */
export function checkBranch(branch: string): string {
  if (isBranchName(branch)) return branch;
  throw invalidArgument("branch_invalid", "This is not a valid branch name.");
}
