import { githubHost, gitlabHost, localHost } from "@millwright/code-host";
import type { OpenCodeHosts } from "../usecases/open-code-host.ts";

/** Opens connections for real; `reach` reaches the forges, at addresses that teams have set. */
export const codeHosts =
  (reach: typeof fetch): OpenCodeHosts =>
  ({ kind, baseUrl, root }, token) =>
    kind === "local"
      ? { kind, host: localHost({ root }) }
      : { kind, host: (kind === "github" ? githubHost : gitlabHost)({ baseUrl, token, fetch: reach }) };
