import { isAbsolute, relative, resolve } from "node:path";
import { DomainError, invalidArgument } from "@millwright/errors";
import type { TeamUid } from "@millwright/ids";

/** How repositories of some owners are reached and where their pull requests are opened. */
export type CodeHost = {
  readonly uid: string;
  readonly teamUid: TeamUid;
  readonly name: string;
  readonly kind: "github" | "gitlab" | "local";
  /** github, gitlab: API base URL, such as https://api.github.com or https://gitlab.com/api/v4. */
  readonly baseUrl: string;
  /** local: directory of bare repositories `<root>/<owner>/<repo>.git`. */
  readonly root: string;
  /** Managed secret with the token; "" = none. */
  readonly secretName: string;
  /** Owners it serves; empty = every owner that no other connection of the team names. */
  readonly owners: readonly string[];
  readonly createdAt: Date;
};

export type NewCodeHost = Pick<CodeHost, "name" | "kind" | "baseUrl" | "root" | "secretName" | "owners">;

const GITHUB_API = "https://api.github.com";
const GITLAB_API = "https://gitlab.com/api/v4";

/** Where a repository is looked for when no connection serves its owner: anybody can read public repositories there. */
export const PUBLIC_GITHUB: Pick<CodeHost, "kind" | "baseUrl" | "root" | "secretName"> = {
  kind: "github",
  baseUrl: GITHUB_API,
  root: "",
  secretName: "",
};

/**
 * Checks a connection someone wants to create. A local root must lie in one of the directories that the operator allows:
 * through a connection its repositories can be read.
 *
 * Errors: code_host_invalid · code_host_root_not_allowed.
 */
export function checkCodeHost(
  asked: NewCodeHost & { readonly kind: string },
  localRoots: readonly string[],
): NewCodeHost {
  const name = asked.name.trim();
  if (name === "" || name.length > 100) throw invalid("name must have 1 to 100 characters");
  const base = { name, secretName: asked.secretName, owners: [...new Set(asked.owners)] };
  switch (asked.kind as string) {
    case "github":
      return { ...base, kind: "github", baseUrl: checkBaseUrl(asked.baseUrl || GITHUB_API), root: "" };
    case "gitlab":
      return { ...base, kind: "gitlab", baseUrl: checkBaseUrl(asked.baseUrl || GITLAB_API), root: "" };
    case "local":
      return { ...base, kind: "local", baseUrl: "", root: checkRoot(asked.root, localRoots) };
    default:
      throw invalid('kind must be "github", "gitlab" or "local"');
  }
}

/** The connection that serves an owner: the one that names it (case-insensitively), else the first that serves everybody. */
export function codeHostFor<T extends Pick<CodeHost, "owners" | "name">>(
  hosts: readonly T[],
  owner: string,
): T | undefined {
  const byName = [...hosts].sort((a, b) => (a.name < b.name ? -1 : 1));
  const wanted = owner.toLowerCase();
  return (
    byName.find((host) => host.owners.some((one) => one.toLowerCase() === wanted)) ??
    byName.find((host) => host.owners.length === 0)
  );
}

function checkBaseUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !["http:", "https:"].includes(url.protocol) || url.username || url.search || url.hash)
    throw invalid("base_url must be an http(s) URL");
  return url.href.replace(/\/+$/, "");
}

function checkRoot(root: string, allowed: readonly string[]): string {
  const path = resolve("/", root);
  const inside = isAbsolute(root) && allowed.some((dir) => !/^\.\.(?:\/|$)/.test(relative(resolve(dir), path)));
  if (inside) return path;
  throw new DomainError({
    kind: "invalid_argument",
    reason: "code_host_root_not_allowed",
    message: "root must be inside a directory that the operator of this platform has allowed for local repositories.",
  });
}

const invalid = (text: string): DomainError => invalidArgument("code_host_invalid", `${text}.`);
