/** Maximum length of a canonical URL, in characters. */
export const CANONICAL_URL_MAX = 2048;

/**
 * Returns the form in which an external URL is stored and searched: lower-case scheme and host, no default port, no
 * fragment, path and query unchanged. Returns undefined if the text is not an http(s) URL, contains credentials, or is
 * too long.
 */
export function canonicalUrl(text: string): string | undefined {
  const url = URL.parse(text.trim());
  if (!url || !["http:", "https:"].includes(url.protocol) || url.username || url.password) return undefined;
  url.hash = "";
  return url.href.length <= CANONICAL_URL_MAX ? url.href : undefined;
}
