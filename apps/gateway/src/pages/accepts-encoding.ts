import type { IncomingHttpHeaders } from "node:http";

/** Returns whether `Accept-Encoding` names a coding with a weight other than 0. */
export const acceptsEncoding = (headers: IncomingHttpHeaders, coding: "br" | "gzip"): boolean =>
  new RegExp(String.raw`\b${coding}\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))`).test(headers["accept-encoding"] ?? "");
