import { optional, type Rule, type ValuesOf } from "@millwright/config";
import { parseClaimRoles, type ProviderSettings, type SessionLimits } from "./identity/index.ts";

/** Sign-in with an OpenID Connect provider, and sessions of browsers. */
export const signInSettings = {
  oidcIssuer: optional.custom(
    "MILLWRIGHT_OIDC_ISSUER",
    "Issuer of the OpenID Connect provider that people [sign in](sign-in.md) with, exactly as its discovery document has it. Absent: people sign in with API keys only.",
    { allowed: "an https URL without query (http for a loopback address)", parse: issuerOf },
  ),
  oidcClientId: optional.string("MILLWRIGHT_OIDC_CLIENT_ID", "Client id of the platform at the provider."),
  oidcClientSecret: optional.secret(
    "MILLWRIGHT_OIDC_CLIENT_SECRET",
    "Client secret. Absent: the platform is a public client, which authenticates by PKCE only.",
  ),
  oidcScopes: optional.string("MILLWRIGHT_OIDC_SCOPES", "Scopes to request, with spaces between.", {
    default: "openid email profile",
  }),
  oidcTeamsClaim: optional.string(
    "MILLWRIGHT_OIDC_TEAMS_CLAIM",
    "Claim with the values that give roles in teams. A dot leads into an object: `realm_access.roles`.",
    { default: "groups" },
  ),
  oidcTeams: optional.custom(
    "MILLWRIGHT_OIDC_TEAMS",
    'Roles by value of that claim and by name or uid of a team, as JSON: `{"developers": {"default": "member"}}`. `"*"` stands for every person.',
    { allowed: "a JSON object of claim values, teams and roles", default: "{}", parse: parseClaimRoles },
  ),
  oidcLabel: optional.string("MILLWRIGHT_OIDC_LABEL", "Name of the provider on the button of the sign-in page.", {
    default: "single sign-on",
  }),
  sessionLifetimeMs: optional.duration(
    "MILLWRIGHT_SESSION_LIFETIME",
    "How long a session of a browser lasts at most.",
    { default: "24h", min: "5m", max: "30d" },
  ),
  sessionIdleMs: optional.duration("MILLWRIGHT_SESSION_IDLE", "How long a session lasts without use.", {
    default: "12h",
    min: "5m",
    max: "30d",
  }),
};

type SignInValues = ValuesOf<typeof signInSettings>;

export const signInRule: Rule<SignInValues> = {
  variables: ["MILLWRIGHT_OIDC_ISSUER", "MILLWRIGHT_OIDC_CLIENT_ID", "MILLWRIGHT_OIDC_SCOPES"],
  check({ oidcIssuer, oidcClientId, oidcScopes }) {
    if ((oidcIssuer === undefined) !== (oidcClientId === undefined))
      throw new Error("MILLWRIGHT_OIDC_ISSUER and MILLWRIGHT_OIDC_CLIENT_ID must be set together.");
    if (!oidcScopes.split(" ").includes("openid"))
      throw new Error(`MILLWRIGHT_OIDC_SCOPES must contain "openid" (got "${oidcScopes}").`);
  },
};

/** Returns the options of the gateway for sign-in. */
export const signInOptions = (
  values: SignInValues,
  publicUrl: string,
): { provider: (ProviderSettings & { label: string }) | undefined; sessionLimits: SessionLimits } => ({
  provider:
    values.oidcIssuer === undefined || values.oidcClientId === undefined
      ? undefined
      : {
          issuer: values.oidcIssuer,
          clientId: values.oidcClientId,
          clientSecret: values.oidcClientSecret,
          scopes: values.oidcScopes,
          redirectUri: `${publicUrl}/session/oidc/callback`,
          teamsClaim: values.oidcTeamsClaim,
          roles: values.oidcTeams,
          label: values.oidcLabel,
        },
  sessionLimits: { lifetimeMs: values.sessionLifetimeMs, idleMs: values.sessionIdleMs },
});

/** Unlike other URLs, an issuer is compared exactly: a slash at its end is part of it. */
function issuerOf(text: string): string {
  const { protocol, hostname, search, hash } = new URL(text);
  const isLoopback = hostname === "localhost" || hostname === "[::1]" || hostname.startsWith("127.");
  if (search !== "" || hash !== "") throw new Error("it has a query or a fragment");
  if (protocol !== "https:" && !(protocol === "http:" && isLoopback)) throw new Error("it is not https");
  return text;
}
