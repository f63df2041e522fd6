import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { OpenIdProvider } from "@millwright/testing";
import { openGateway, type TestGateway } from "./support/gateway.ts";

const CALLBACK = "https://mill.example/session/oidc/callback";
const ADA = { sub: "ada", name: "Ada", email: "ada@example.com", email_verified: true, groups: ["developers"] };

let provider: OpenIdProvider;
let g: TestGateway;
beforeAll(async () => {
  provider = await OpenIdProvider.start();
  await provider.register(CALLBACK, [ADA]);
  g = await openGateway({
    provider: {
      ...provider.client,
      issuer: provider.issuer,
      scopes: "openid email profile",
      redirectUri: CALLBACK,
      teamsClaim: "groups",
      roles: { developers: { default: "member" } },
      label: "Acme",
    },
  });
});
afterAll(async () => {
  await g.close();
  await provider.close();
});

/** Signs in at the provider as a browser does. Returns the response that it sends the browser back with. */
async function authorize(start: string): Promise<URL> {
  const jar = new Map<string, string>();
  let [url, body] = [start, undefined as string | undefined];
  for (let step = 0; step < 10; step += 1) {
    const response = await fetch(url, {
      redirect: "manual",
      headers: {
        cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
        ...(body === undefined ? {} : { "content-type": "application/x-www-form-urlencoded" }),
      },
      ...(body === undefined ? {} : { method: "POST", body }),
    });
    for (const [, name, value] of response.headers.getSetCookie().map((each) => /^([^=]+)=([^;]*)/.exec(each)!))
      jar.set(name!, value!);
    const location = response.headers.get("location");
    if (location?.startsWith(CALLBACK)) return new URL(location);
    body = location === null ? "sub=ada" : undefined; // the page of the provider
    url = location === null ? url : new URL(location, url).href;
  }
  throw new Error(`The provider does not lead back: it is at ${url}.`);
}

test("a certified provider signs a person in once per code, with teams from the userinfo endpoint", async () => {
  const get = (path: string, cookie: string) => g.api.call("GET", path, { key: null, headers: { cookie } });
  const started = await get("/session/oidc", "");
  const cookie = started.headers.get("set-cookie")!.split(";")[0]!;
  const { pathname, search } = await authorize(started.headers.get("location")!);
  const signedIn = await get(`${pathname}${search}`, cookie);
  expect(signedIn.status).toBe(200);
  const session = signedIn.headers.getSetCookie()[0]!.split(";")[0]!;
  expect((await get("/api/v1/whoami", session)).body).toMatchObject({
    principal: { display_name: "Ada", email: "ada@example.com" },
    teams: [{ name: "default", role: "member" }],
  });
  const replayed = await get(`${pathname}${search}`, cookie);
  expect([replayed.status, replayed.headers.getSetCookie().join()]).toEqual([
    400,
    expect.not.stringContaining("millwright_session="),
  ]);
});
