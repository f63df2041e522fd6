import { githubHost, localHost } from "@millwright/code-host";
import type { OpenCodeHosts } from "../usecases/open-code-host.ts";

/** Opens connections for real; `fetchImpl` reaches the forges. */
export const codeHosts =
  (fetchImpl?: typeof fetch): OpenCodeHosts =>
  ({ kind, baseUrl, root }, token) =>
    kind === "local"
      ? { kind, host: localHost({ root }) }
      : { kind, host: githubHost({ baseUrl, token, ...(fetchImpl ? { fetch: fetchImpl } : {}) }) };
