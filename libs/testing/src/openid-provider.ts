import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair } from "jose";
import type { Provider } from "oidc-provider";

/** A person whom the provider knows. */
export type OpenIdPerson = {
  readonly sub: string;
  readonly name: string;
  readonly email: string;
  readonly email_verified: boolean;
  readonly groups: readonly string[];
};

const CLIENT = { clientId: "millwright", clientSecret: "client-secret-of-the-test" };

/**
 * A certified OpenID Connect provider (oidc-provider) whose page asks for the subject only. Its host is `localhost`, which
 * is another site than 127.0.0.1. PKCE is required.
 */
export class OpenIdProvider {
  readonly client = CLIENT;
  readonly issuer: string;
  readonly #server: ReturnType<typeof createServer>;
  #provider: Provider | undefined;

  private constructor(server: ReturnType<typeof createServer>) {
    this.#server = server;
    this.issuer = `http://localhost:${(server.address() as AddressInfo).port}`;
    server.on("request", (request, response) => {
      void this.#respond(request).then((page) => {
        if (page === undefined) return void this.#provider!.callback()(request, response);
        if (typeof page === "string") return void response.writeHead(200, { "content-type": "text/html" }).end(page);
        return this.#provider!.interactionFinished(request, response, page);
      });
    });
  }

  static async start(): Promise<OpenIdProvider> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
    return new OpenIdProvider(server);
  }

  /** Registers the client and the people. */
  async register(redirectUri: string, people: readonly OpenIdPerson[]): Promise<void> {
    const { privateKey } = await generateKeyPair("RS256", { extractable: true });
    const { Provider: OidcProvider } = await import("oidc-provider"); // late, because every suite loads this module
    this.#provider = new OidcProvider(this.issuer, {
      clients: [{ client_id: CLIENT.clientId, client_secret: CLIENT.clientSecret, redirect_uris: [redirectUri] }],
      jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: "RS256", use: "sig" }] },
      cookies: { keys: ["of the test"] },
      ttl: { AccessToken: 300, AuthorizationCode: 60, Grant: 3600, IdToken: 300, Interaction: 600, Session: 3600 },
      pkce: { required: () => true },
      claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name", "groups"] },
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, { uid }) => `/interaction/${uid}` },
      findAccount: (_, sub) => {
        const person = people.find((each) => each.sub === sub);
        return person && { accountId: sub, claims: () => ({ ...person, groups: [...person.groups] }) };
      },
      async loadExistingGrant({ oidc }) {
        const grant = new oidc.provider.Grant({
          accountId: oidc.session!.accountId!,
          clientId: oidc.client!.clientId,
        });
        grant.addOIDCScope("openid email profile");
        await grant.save();
        return grant;
      },
    });
  }

  /** Returns the page or the result of the interaction, or undefined for requests of the protocol. */
  async #respond(request: IncomingMessage): Promise<string | { login: { accountId: string } } | undefined> {
    if (!request.url?.startsWith("/interaction/")) return undefined;
    if (request.method !== "POST")
      return '<!doctype html><title>Acme</title><form method="post"><label>Subject <input name="sub"></label><button>Continue</button></form>';
    let form = "";
    for await (const chunk of request) form += String(chunk);
    return { login: { accountId: new URLSearchParams(form).get("sub") ?? "" } };
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
