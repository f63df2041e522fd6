import type { LocalHost, PullRequestHost } from "@millwright/code-host";
import type { Caller } from "@millwright/caller";
import type { CodeHost } from "../domain/code-host.ts";

/**
 * An opened connection. GitHub and GitLab store pull requests themselves; those of a local directory are stored here.
 */
export type OpenCodeHost =
  | { readonly kind: "github" | "gitlab"; readonly host: PullRequestHost }
  | { readonly kind: "local"; readonly host: LocalHost };

export type ResolveSecrets = {
  resolveSecrets(caller: Caller, teamUid: string, names: readonly string[]): Promise<Readonly<Record<string, string>>>;
};

/** Returns the token of a connection; "" if the connection has no secret. */
export async function readToken(
  identity: ResolveSecrets,
  caller: Caller,
  { teamUid, secretName }: Pick<CodeHost, "teamUid" | "secretName">,
): Promise<string> {
  if (secretName === "") return "";
  return (await identity.resolveSecrets(caller, teamUid, [secretName]))[secretName] ?? "";
}

/** Opens a connection with its token. "" means no token. */
export type OpenCodeHosts = (connection: Pick<CodeHost, "kind" | "baseUrl" | "root">, token: string) => OpenCodeHost;
