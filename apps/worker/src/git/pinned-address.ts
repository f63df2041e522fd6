import { isIP } from "node:net";
import type { worker } from "@millwright/contracts";
import { refusalIn, type OutboundRule } from "@millwright/outbound";
import { GitFailed } from "./host-git.ts";
import { nameOf } from "./repository.ts";

const MOVED_TIMEOUT_MS = 15_000;

/**
 * Returns settings that make git connect only to the checked addresses, even if the name later resolves to others. Git
 * follows no redirects: a redirect within the host is resolved before git runs. Throws `GitFailed` for addresses inside
 * the worker's network.
 */
export async function pinnedAddress(
  repository: worker.Repository,
  outbound: OutboundRule,
): Promise<Record<string, string>> {
  const { hostname, port, protocol } = new URL(repository.cloneUrl);
  const refused = (error: unknown): never => {
    throw new GitFailed(`Cannot fetch ${nameOf(repository)}`, (error as Error).message);
  };
  const addresses = await outbound
    .addressesOf(hostname)
    // git has a better message for an unknown name
    .catch((error: unknown) => (refusalIn(error) ? refused(error) : []));
  const moved = await movedTo(repository, outbound);
  return {
    "http.followRedirects": "false",
    ...(moved === repository.cloneUrl ? {} : { [`url.${moved}.insteadOf`]: repository.cloneUrl }),
    ...(addresses.length > 0 && isIP(hostname.replace(/^\[|\]$/g, "")) === 0
      ? {
          "http.curloptResolve": `${hostname}:${port || (protocol === "https:" ? 443 : 80)}:${addresses.map((address) => (isIP(address) === 6 ? `[${address}]` : address)).join(",")}`,
        }
      : {}),
  };
}

/** Returns the current URL of a renamed repository if it is on the same host, otherwise the clone URL. */
async function movedTo({ cloneUrl, authorizationHeader }: worker.Repository, outbound: OutboundRule): Promise<string> {
  const suffix = "/info/refs?service=git-upload-pack";
  try {
    const headers =
      authorizationHeader === "" ? {} : { authorization: authorizationHeader.replace(/^authorization:\s*/i, "") };
    const response = await outbound.fetch(`${cloneUrl}${suffix}`, {
      headers,
      redirect: "manual",
      signal: AbortSignal.timeout(MOVED_TIMEOUT_MS),
    });
    await response.body?.cancel();
    const moved = new URL(response.headers.get("location") ?? `${cloneUrl}${suffix}`, cloneUrl);
    return moved.origin === new URL(cloneUrl).origin && moved.href.endsWith(suffix)
      ? moved.href.slice(0, -suffix.length)
      : cloneUrl;
  } catch {
    return cloneUrl; // git has a better message for the fault
  }
}
