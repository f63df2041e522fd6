/** The longest canonical URL (fields-runs §6.4). */
export const CANONICAL_URL_MAX = 2048;

/**
 * The form in which an external URL is stored and looked up: lower-case scheme and host, no default port, no fragment, path
 * and query as given (fields-runs §6.5). Undefined for what is not an http(s) URL, carries a credential, or is too long.
 */
export function canonicalUrl(text: string): string | undefined {
  const url = URL.parse(text.trim());
  if (!url || !["http:", "https:"].includes(url.protocol) || url.username || url.password) return undefined;
  url.hash = "";
  return url.href.length <= CANONICAL_URL_MAX ? url.href : undefined;
}
