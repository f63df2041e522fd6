import type { IncomingHttpHeaders } from "node:http";
import { DomainError } from "@millwright/errors";

/**
 * Throws `cross_site_request` (permission_denied) unless a page of this server sent the request. Browsers send
 * `Sec-Fetch-Site` to https and localhost, and `Origin` with every write.
 */
export function assertSameOrigin(headers: IncomingHttpHeaders, publicUrl: string): void {
  const site = headers["sec-fetch-site"];
  const isOwn =
    site === undefined
      ? headers.origin === new URL(publicUrl).origin || hostOf(headers.origin) === headers.host
      : site === "same-origin";
  if (isOwn) return;
  throw new DomainError({
    kind: "permission_denied",
    reason: "cross_site_request",
    message: "A write with a session cookie must come from a page of this server. Scripts send an API key instead.",
  });
}

function hostOf(origin: string | undefined): string | undefined {
  return origin !== undefined && URL.canParse(origin) ? new URL(origin).host : undefined;
}
