/**
 * Returns the spelling of a URL under which every table stores a pull request: lower case, without scheme, trailing
 * slashes, query and fragment. Code hosts treat owner and repository names case-insensitively, and people copy URLs
 * with anchors.
 */
export function urlKey(url: string): string {
  return url
    .trim()
    .toLowerCase()
    .replace(/[?#].*$/s, "")
    .replace(/^[a-z][a-z0-9+.-]*:\/\//, "")
    .replace(/\/+$/, "");
}
