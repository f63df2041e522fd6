/** Rules that the API and definition files share. */

export const FACTORY_NAME_MAX = 100;
export const ALIAS_MAX = 60;
export const ALIAS = /^[\p{L}\p{N} ._-]+$/u;

/** Owner (or full namespace, `group/subgroup`) and name of a repository; no segment is `.` or `..`. */
export const REPOSITORY_OWNER = /^(?!.*(^|\/)\.{1,2}($|\/))[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+)*$/;
export const REPOSITORY_NAME = /^(?!\.{1,2}$)[A-Za-z0-9._-]+$/;

export const CODE_FORGES = ["GITHUB", "GITLAB", "AZURE_DEVOPS"] as const;
export const CREDENTIAL_STRATEGIES = ["EXECUTOR", "CREATOR"] as const;

/** Returns whether a text has at most `max` characters, counted as code points like `maxLength` of JSON Schema. */
export const hasAtMostCharacters = (text: string, max: number): boolean =>
  text.length <= max || Array.from(text).length <= max;

export const isFactoryName = (name: string): boolean =>
  name.trim() !== "" && hasAtMostCharacters(name, FACTORY_NAME_MAX);
export const isAlias = (alias: string): boolean =>
  alias.trim() !== "" && hasAtMostCharacters(alias, ALIAS_MAX) && ALIAS.test(alias);

export const WEBHOOK_AUTH_MODES = ["token", "url_token", "signature"] as const;
/** Modes that need only a secret. */
export const SIGNATURE_SCHEMES = [
  "github",
  "pagerduty",
  "sentry",
  "standard_webhooks",
  "stripe",
  "vercel",
  "slack",
  "linear",
  "shopify",
  "gitlab",
] as const;
/** Per factory, including disabled webhooks. */
export const WEBHOOKS_MAX = 20;
/** RFC 9110 `token`, short enough for a log. */
export const HEADER_NAME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}$/;

const CREDENTIAL_HEADERS: ReadonlySet<string> = new Set([
  ...[
    "authorization",
    "cookie",
    "proxy-authorization",
    "set-cookie",
    "webhook-signature",
    "svix-signature",
    "stripe-signature",
    "x-hub-signature-256",
    "x-hub-signature",
  ],
  ...[
    "x-pagerduty-signature",
    "sentry-hook-signature",
    "x-vercel-signature",
    "x-slack-signature",
    "linear-signature",
    "x-shopify-hmac-sha256",
    "x-gitlab-token",
  ],
]);

/** Returns whether a header contains a credential or a signature, so that it is never stored as an identity. */
export const isCredentialHeader = (name: string): boolean => CREDENTIAL_HEADERS.has(name.toLowerCase());

/** Returns what is wrong with the roles of a suite's configurations, or undefined. */
export const rolesFault = (roles: readonly string[]): string | undefined =>
  roles.filter((role) => role === "baseline").length > 1 ? "At most one configuration can be the baseline." : undefined;

/** Returns what is wrong with the titles of a suite's tasks, or undefined. */
export function titlesFault(titles: readonly string[]): string | undefined {
  const seen = new Set<string>();
  for (const title of titles) {
    if (seen.has(title)) return `Titles must be unique in a suite; ${JSON.stringify(title)} is used twice.`;
    seen.add(title);
  }
  return undefined;
}
