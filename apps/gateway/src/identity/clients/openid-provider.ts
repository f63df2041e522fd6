import * as openid from "openid-client";
import type { Clock } from "@millwright/clock";

/** How the platform is registered at an OpenID Connect provider. */
export type ProviderOptions = {
  readonly issuer: string;
  readonly clientId: string;
  /** Absent for a public client, which authenticates by PKCE only. */
  readonly clientSecret?: string | undefined;
  readonly scopes: string;
  /** The URL of this platform to which the provider returns the browser. */
  readonly redirectUri: string;
};

/** The secrets of one sign-in, which only the browser that started it has. */
export type ProviderChecks = { readonly state: string; readonly nonce: string; readonly verifier: string };

/** What a provider states about the person who has signed in. */
export type ProviderClaims = {
  readonly issuer: string;
  readonly subject: string;
  /** In lower case. Absent unless the provider states that it has verified the address. */
  readonly verifiedEmail: string | undefined;
  readonly name: string | undefined;
  /** All claims of the ID token and of the userinfo endpoint; those of the ID token take precedence. */
  readonly all: Claims;
};

const METADATA_VALID_MS = 3_600_000;
const TIMEOUT_SECONDS = 10;

/** An OpenID Connect provider, found by discovery: authorization code flow with PKCE, state and nonce. */
export class OpenIdProvider {
  readonly #options: ProviderOptions;
  readonly #clock: Clock;
  #discovered: { readonly configuration: Promise<openid.Configuration>; readonly atMs: number } | undefined;

  constructor(options: ProviderOptions, clock: Clock) {
    this.#options = options;
    this.#clock = clock;
  }

  /** Returns the page of the provider for a new sign-in. Errors: those of discovery. */
  async begin({ askAgain }: { askAgain: boolean }): Promise<{ url: string; checks: ProviderChecks }> {
    const checks = {
      state: openid.randomState(),
      nonce: openid.randomNonce(),
      verifier: openid.randomPKCECodeVerifier(),
    };
    const url = openid.buildAuthorizationUrl(await this.#configuration(), {
      redirect_uri: this.#options.redirectUri,
      scope: this.#options.scopes,
      state: checks.state,
      nonce: checks.nonce,
      code_challenge: await openid.calculatePKCECodeChallenge(checks.verifier),
      code_challenge_method: "S256",
      ...(askAgain ? { prompt: "login" } : {}),
    });
    return { url: url.href, checks };
  }

  /**
   * Redeems the code of a provider's response, given by its query. Throws an Error of openid-client unless the state, the
   * nonce, and the signature, issuer, audience and times of the ID token are valid.
   */
  async redeem(query: string, { state, nonce, verifier }: ProviderChecks): Promise<ProviderClaims> {
    const configuration = await this.#configuration();
    const tokens = await openid.authorizationCodeGrant(configuration, new URL(`${this.#options.redirectUri}${query}`), {
      expectedState: state,
      expectedNonce: nonce,
      pkceCodeVerifier: verifier,
      idTokenExpected: true,
    });
    const idToken: Claims & { iss: string; sub: string } = tokens.claims()!;
    const userInfo: Claims = configuration.serverMetadata().userinfo_endpoint
      ? await openid.fetchUserInfo(configuration, tokens.access_token, idToken.sub)
      : {};
    const all: Claims = { ...userInfo, ...idToken };
    return {
      issuer: idToken.iss,
      subject: idToken.sub,
      verifiedEmail: verifiedEmailOf(idToken) ?? verifiedEmailOf(userInfo),
      name: [all["name"], all["preferred_username"]].find(
        (name): name is string => typeof name === "string" && name !== "",
      ),
      all,
    };
  }

  /** Discovers the provider once an hour. A failure is not stored. */
  #configuration(): Promise<openid.Configuration> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#discovered && nowMs - this.#discovered.atMs < METADATA_VALID_MS) return this.#discovered.configuration;
    const discovered = { configuration: this.#discover(), atMs: nowMs };
    this.#discovered = discovered;
    discovered.configuration.catch(() => {
      if (this.#discovered === discovered) this.#discovered = undefined;
    });
    return discovered.configuration;
  }

  #discover(): Promise<openid.Configuration> {
    const { issuer, clientId, clientSecret } = this.#options;
    const server = new URL(issuer);
    return openid.discovery(
      server,
      clientId,
      clientSecret,
      clientSecret === undefined ? openid.None() : openid.ClientSecretBasic(clientSecret),
      {
        timeout: TIMEOUT_SECONDS,
        execute: [
          // verifies signatures of ID tokens although they are received from the provider directly
          openid.enableNonRepudiationChecks,
          ...(server.protocol === "http:" ? [openid.allowInsecureRequests] : []),
        ],
      },
    );
  }
}

type Claims = Readonly<Record<string, unknown>>;

/** Some providers send "true" as text. */
const verifiedEmailOf = ({ email, email_verified: isVerified }: Claims): string | undefined =>
  typeof email === "string" && email.includes("@") && (isVerified === true || isVerified === "true")
    ? email.toLowerCase()
    : undefined;
