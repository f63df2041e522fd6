import type { LocalHost, PullRequestHost } from "@millwright/code-host";
import type { CodeHost } from "../domain/code-host.ts";

/** A connection in use: GitHub and GitLab keep pull requests themselves, a local directory leaves them to us. */
export type OpenCodeHost =
  | { readonly kind: "github" | "gitlab"; readonly host: PullRequestHost }
  | { readonly kind: "local"; readonly host: LocalHost };

/** Opens a connection with its token ("" = none). */
export type OpenCodeHosts = (connection: Pick<CodeHost, "kind" | "baseUrl" | "root">, token: string) => OpenCodeHost;
