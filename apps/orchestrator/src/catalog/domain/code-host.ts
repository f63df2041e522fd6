import { isAbsolute, relative, resolve } from "node:path";
import { DomainError, invalidArgument } from "@millwright/errors";
import type { TeamUid } from "@millwright/ids";
import type { RepositoryRef } from "./agent-config.ts";

/**
 * A connection to a code host: how the repositories of some owners are cloned, and where their pull requests are
 * opened.
 */
export type CodeHost = {
  readonly uid: string;
  readonly teamUid: TeamUid;
  readonly name: string;
  readonly kind: "github" | "gitlab" | "local";
  /** github, gitlab: API base URL, such as https://api.github.com or https://gitlab.com/api/v4. */
  readonly baseUrl: string;
  /** local: directory of bare repositories `<root>/<owner>/<repo>.git`. */
  readonly root: string;
  /** Name of the managed secret that contains the token; "" = none. */
  readonly secretName: string;
  /** Owners that the connection serves; empty = every owner that no other connection of the team names. */
  readonly owners: readonly string[];
  readonly createdAt: Date;
};

export type NewCodeHost = Pick<CodeHost, "name" | "kind" | "baseUrl" | "root" | "secretName" | "owners">;

const GITHUB_API = "https://api.github.com";
const GITLAB_API = "https://gitlab.com/api/v4";

/** The code host for owners that no connection serves: public repositories on GitHub, which need no token. */
export const PUBLIC_GITHUB: Pick<CodeHost, "kind" | "baseUrl" | "root" | "secretName"> = {
  kind: "github",
  baseUrl: GITHUB_API,
  root: "",
  secretName: "",
};

/**
 * Returns the checked values of a new connection. A local root must be inside a directory that the operator allows,
 * because a connection gives access to the repositories under its root.
 *
 * Errors: code_host_invalid · code_host_root_not_allowed.
 */
export function checkCodeHost(
  requested: NewCodeHost & { readonly kind: string },
  localRoots: readonly string[],
): NewCodeHost {
  const name = requested.name.trim();
  if (name === "" || name.length > 100) throw invalid("name must have 1 to 100 characters");
  const base = { name, secretName: requested.secretName, owners: [...new Set(requested.owners)] };
  switch (requested.kind as string) {
    case "github":
      return { ...base, kind: "github", baseUrl: checkBaseUrl(requested.baseUrl || GITHUB_API), root: "" };
    case "gitlab":
      return { ...base, kind: "gitlab", baseUrl: checkBaseUrl(requested.baseUrl || GITLAB_API), root: "" };
    case "local":
      return { ...base, kind: "local", baseUrl: "", root: checkRoot(requested.root, localRoots) };
    default:
      throw invalid('kind must be "github", "gitlab" or "local"');
  }
}

/**
 * Returns the connection that serves an owner: the one that names the owner (case-insensitively), else the first by
 * name that serves every owner.
 */
export function codeHostFor<T extends Pick<CodeHost, "owners" | "name">>(
  hosts: readonly T[],
  owner: string,
): T | undefined {
  const byName = [...hosts].sort((a, b) => (a.name < b.name ? -1 : 1));
  const wanted = owner.toLowerCase();
  return (
    byName.find((host) => host.owners.some((candidate) => candidate.toLowerCase() === wanted)) ??
    byName.find((host) => host.owners.length === 0)
  );
}

/** Returns the owner and the name in `owner/repo` or `group/…/project`; the owner is empty if the text has no slash. */
export function repositoryNamed(text: string): RepositoryRef {
  const slash = text.lastIndexOf("/");
  return { owner: text.slice(0, Math.max(slash, 0)), repo: text.slice(slash + 1) };
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
