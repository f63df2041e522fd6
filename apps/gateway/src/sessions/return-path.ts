import { containsCredential } from "../rest/index.ts";

/** Paths and queries of this server's pages. A second slash or a backslash would start the name of another host. */
const PAGE =
  /^\/(?!\/|(?:api|assets|blobs|docs|errors|metrics|rpc|session|sign-in|webhooks)(?:[/?]|$))[\w./?=&%~:,;+@!*'()-]*$/;

/** Returns the path of the page to open after signing in: the given one if it is a page of this server, or else "/". */
export const returnPath = (path: string | null | undefined): string =>
  path != null && path.length <= 2000 && PAGE.test(path) && !containsCredential(path) ? path : "/";
