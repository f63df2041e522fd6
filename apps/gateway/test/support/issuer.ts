import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { exportJWK, generateKeyPair, SignJWT, type JWTPayload } from "jose";

export const CLIENT = { clientId: "millwright", clientSecret: "client-secret-of-the-test" };

/** What the token endpoint returns instead of a valid ID token. */
export type Forgery = {
  /** Replaces claims of the ID token. A claim that is undefined is left out. */
  claims?: (valid: JWTPayload) => JWTPayload;
  /** Replaces the ID token. */
  idToken?: (valid: string) => string;
  /** Signs with a key that the issuer does not publish. */
  signedByOther?: boolean;
};

/**
 * Starts an OpenID Connect issuer that signs in whomever a test names, and that can lie. It redeems each code once and
 * checks PKCE.
 */
export async function startIssuer() {
  const [own, other] = [await generateKeyPair("RS256"), await generateKeyPair("RS256")];
  const jwk = { ...(await exportJWK(own.publicKey)), kid: "own", alg: "RS256", use: "sig" };
  const codes = new Map<string, { challenge: string; nonce: string; person: Record<string, unknown> }>();
  const requests: string[] = [];
  let forgery: Forgery = {};
  let isDown = false;
  let issuer = "";

  const idTokenFor = async ({ nonce, person }: { nonce: string; person: Record<string, unknown> }) => {
    const now = Math.floor(Date.now() / 1000);
    const valid: JWTPayload = { iss: issuer, aud: CLIENT.clientId, iat: now, exp: now + 300, nonce, ...person };
    const { privateKey } = forgery.signedByOther ? other : own;
    const token = await new SignJWT(forgery.claims?.(valid) ?? valid)
      .setProtectedHeader({ alg: "RS256", kid: "own" })
      .sign(privateKey);
    return forgery.idToken?.(token) ?? token;
  };

  const respond = async (request: IncomingMessage): Promise<[status: number, body: unknown]> => {
    const path = request.url!.split("?")[0]!;
    requests.push(path);
    if (isDown) return [503, {}];
    if (path === "/.well-known/openid-configuration")
      return [
        200,
        {
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/jwks`,
          response_types_supported: ["code"],
          subject_types_supported: ["public"],
          id_token_signing_alg_values_supported: ["RS256"],
          code_challenge_methods_supported: ["S256"],
        },
      ];
    if (path === "/jwks") return [200, { keys: [jwk] }];
    if (path === "/token") {
      const form = new URLSearchParams(await textOf(request));
      const code = form.get("code") ?? "";
      const granted = codes.get(code);
      codes.delete(code);
      if (!granted || (await challengeOf(form.get("code_verifier") ?? "")) !== granted.challenge)
        return [400, { error: "invalid_grant" }];
      return [200, { access_token: "access", token_type: "Bearer", id_token: await idTokenFor(granted) }];
    }
    return [404, {}];
  };
  const server = createServer((request, response) => {
    void respond(request).then(([status, body]) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body)),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  return {
    issuer,
    requests,
    /** Signs a person in at the page of the provider. Returns the query of its response. */
    authorize(url: string, person: Record<string, unknown> & { sub: string }): string {
      const asked = new URL(url).searchParams;
      const code = crypto.randomUUID();
      codes.set(code, { challenge: asked.get("code_challenge")!, nonce: asked.get("nonce")!, person });
      return `?${new URLSearchParams({ code, state: asked.get("state")! }).toString()}`;
    },
    forge: (next: Forgery) => void (forgery = next),
    setDown: (next: boolean) => void (isDown = next),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

export type Issuer = Awaited<ReturnType<typeof startIssuer>>;

const challengeOf = async (verifier: string): Promise<string> =>
  Buffer.from(await crypto.subtle.digest("SHA-256", Buffer.from(verifier))).toString("base64url");

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request) text += String(chunk);
  return text;
}
