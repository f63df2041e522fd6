import { forgeReader, githubHost, gitlabHost, localHost, type ForgeReader } from "@millwright/code-host";
import type { CodeHost } from "../domain/code-host.ts";
import type { OpenCodeHosts } from "../usecases/open-code-host.ts";

/** Opens connections to code hosts. `reach` is the fetch for forges, whose base URLs teams configure. */
export const codeHosts =
  (reach: typeof fetch): OpenCodeHosts =>
  ({ kind, baseUrl, root }, token) =>
    kind === "local"
      ? { kind, host: localHost({ root }) }
      : { kind, host: (kind === "github" ? githubHost : gitlabHost)({ baseUrl, token, fetch: reach }) };

/** Opens connections to forges that read with conditional requests (ETags). */
export const forgeReaders =
  (reach: typeof fetch) =>
  ({ kind, baseUrl }: Pick<CodeHost, "kind" | "baseUrl">, token: string): ForgeReader =>
    forgeReader({ kind: kind === "gitlab" ? "gitlab" : "github", baseUrl, token, fetch: reach });
