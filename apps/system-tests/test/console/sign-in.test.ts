import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { OpenIdProvider } from "@millwright/testing";
import { ConsoleSession, expectAccessible, inBrowser, type ConsolePage } from "../support/browser.ts";

const ADA = { sub: "ada", name: "Ada", email: "ada@example.com", email_verified: true, groups: ["developers"] };

inBrowser("signing in", () => {
  let provider: OpenIdProvider;
  let session: ConsoleSession;
  beforeAll(async () => {
    provider = await OpenIdProvider.start();
    session = await ConsoleSession.start({
      workers: 0,
      env: {
        MILLWRIGHT_OIDC_ISSUER: provider.issuer,
        MILLWRIGHT_OIDC_CLIENT_ID: provider.client.clientId,
        MILLWRIGHT_OIDC_CLIENT_SECRET: provider.client.clientSecret,
        MILLWRIGHT_OIDC_LABEL: "Acme",
        MILLWRIGHT_OIDC_TEAMS: '{"developers": {"default": "member"}}',
      },
    });
    await provider.register(`${session.platform.url}/session/oidc/callback`, [ADA]);
  });
  afterAll(async () => {
    await session?.remove();
    await provider?.close();
  });

  /** Opens a path signed out, and signs in at the provider. */
  const continueAs = async (sub: string, path: string): Promise<ConsolePage> => {
    const page = await session.newPage();
    await page.goto(path);
    await page.getByRole("link", { name: "Continue with Acme" }).click();
    await page.getByLabel("Subject").fill(sub);
    await page.getByRole("button", { name: "Continue" }).click();
    return page;
  };
  /** Returns problems of the page besides the navigations to the provider. */
  const problemsOf = (page: ConsolePage): string[] =>
    page.problems.filter((problem) => !problem.startsWith(`request to ${provider.issuer}/`));
  const isSignedIn = (page: ConsolePage): Promise<void> =>
    page.getByRole("navigation", { name: "Main" }).waitFor({ timeout: 20_000 });
  const isSignedOut = (page: ConsolePage): Promise<void> => page.getByLabel("API key").waitFor();

  test("with the provider opens the requested page, in the team that the claims give", async () => {
    const signedOut = await session.newPage();
    await signedOut.goto("/runs?state=SUCCEEDED");
    await signedOut.getByRole("link", { name: "Continue with Acme" }).waitFor();
    await expectAccessible(signedOut);
    const page = await continueAs("ada", "/runs?state=SUCCEEDED");
    await isSignedIn(page);
    const { pathname, search } = new URL(page.url());
    expect(pathname + search).toBe("/runs?state=SUCCEEDED");
    await page.getByRole("button", { name: "Ada" }).waitFor();
    await page.reload();
    await isSignedIn(page);
    expect(problemsOf(page)).toEqual([]);
  });

  test("and out everywhere ends the sessions of all browsers", async () => {
    const [first, second] = [await continueAs("ada", "/runs"), await continueAs("ada", "/runs")];
    await isSignedIn(first);
    await isSignedIn(second);
    await first.getByRole("button", { name: "Ada" }).click();
    await first.getByRole("menuitem", { name: "Sign out everywhere" }).click();
    await isSignedOut(first);
    await second.reload();
    await second.getByText("The session has ended").waitFor();
    expect([...problemsOf(first), ...problemsOf(second)]).toEqual([]);
  });
});
