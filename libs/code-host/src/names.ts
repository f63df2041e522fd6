import { invalidArgument } from "@millwright/errors";
import type { Repository } from "./code-host.ts";

const NAME = /^(?!-|\.{1,2}$)[A-Za-z0-9._-]{1,100}$/;

/**
 * Returns whether a text can be the owner or name of a repository; such a text is safe as one segment of a path or URL.
 */
export const isRepositoryName = (text: string): boolean =>
  NAME.test(text) && !text.endsWith(".git") && !text.endsWith(".lock");

/** Returns whether a text is a full commit id (SHA-1 or SHA-256) in lower case. */
export const isSha = (text: string): boolean => /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);

/** Control characters, space and ~ ^ : ? * [ \ */
// oxlint-disable-next-line no-control-regex -- the pattern matches control characters
const FORBIDDEN = /[\x00-\x20\x7f~^:?*[\\]|\.\.|@\{|\/\//;

/** Returns whether git accepts a text as a branch name (git-check-ref-format) and does not parse it as an option. */
export function isBranchName(text: string): boolean {
  if (text === "" || text === "@" || text === "HEAD" || text.length > 250 || FORBIDDEN.test(text)) return false;
  if (/^[-/]|[./]$/.test(text)) return false;
  return text.split("/").every((part) => !part.startsWith(".") && !part.endsWith(".lock"));
}

/** Throws `repository_invalid` unless the text is `owner/repo`. */
export function checkRepository(repository: Repository): Repository {
  if (isRepositoryName(repository.owner) && isRepositoryName(repository.repo)) return repository;
  throw invalidArgument(
    "repository_invalid",
    `"${repository.owner}/${repository.repo}" is not a repository. Use owner/repo.`,
  );
}

/** Accepts a project below groups, `group/…/project`. Errors: repository_invalid. */
export function checkProject({ owner, repo }: Repository): string {
  if (owner.split("/").every(isRepositoryName) && isRepositoryName(repo)) return `${owner}/${repo}`;
  throw invalidArgument(
    "repository_invalid",
    `"${owner}/${repo}" is not a project. Use group/project or group/subgroup/project.`,
  );
}

/** Throws `branch_invalid` unless the text is a branch name. */
export function checkBranch(branch: string): string {
  if (isBranchName(branch)) return branch;
  throw invalidArgument("branch_invalid", `"${branch}" is not a valid branch name.`);
}
