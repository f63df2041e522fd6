import type { LocalHost, PullRequestHost } from "@millwright/code-host";
import type { CodeHost } from "../domain/code-host.ts";

/**
 * An opened connection. GitHub and GitLab store pull requests themselves; those of a local directory are stored here.
 */
export type OpenCodeHost =
  | { readonly kind: "github" | "gitlab"; readonly host: PullRequestHost }
  | { readonly kind: "local"; readonly host: LocalHost };

/** Opens a connection with its token. "" means no token. */
export type OpenCodeHosts = (connection: Pick<CodeHost, "kind" | "baseUrl" | "root">, token: string) => OpenCodeHost;
