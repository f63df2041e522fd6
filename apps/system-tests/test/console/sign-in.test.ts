import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { OpenIdProvider } from "@millwright/testing";
import { ConsoleSession, expectAccessible, inBrowser, type ConsolePage } from "../support/browser.ts";

const PERSON = { name: "Ada", email_verified: true };
const PEOPLE = [
  { ...PERSON, sub: "ada", email: "ada@example.com", groups: ["developers"] },
  { ...PERSON, sub: "bob", name: "Bob", email: "bob@example.com", groups: [] },
];

inBrowser("signing in", () => {
  let provider: OpenIdProvider;
  let session: ConsoleSession;
  beforeAll(async () => {
    provider = await OpenIdProvider.start();
    session = await ConsoleSession.start({
      workers: 0,
      env: {
        MILLWRIGHT_BOOTSTRAP_API_KEY: "",
        MILLWRIGHT_OIDC_ISSUER: provider.issuer,
        MILLWRIGHT_OIDC_CLIENT_ID: provider.client.clientId,
        MILLWRIGHT_OIDC_CLIENT_SECRET: provider.client.clientSecret,
        MILLWRIGHT_OIDC_LABEL: "Acme",
        MILLWRIGHT_OIDC_TEAMS: '{"developers": {"default": "member"}}',
      },
    });
    await provider.register(`${session.platform.url}/session/oidc/callback`, PEOPLE);
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

  test("with the link of the first start works once", async () => {
    const link = /http\S+\/session\/link\/\S+/.exec(session.platform.output())![0];
    const page = await session.newPage();
    await page.goto(link);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Sign in" }).click();
    await isSignedIn(page);
    await page.getByRole("button", { name: "Owner" }).waitFor();
    const other = await session.newPage();
    await other.goto(link);
    await other.getByText("used already").waitFor();
    expect([...page.problems, ...other.problems]).toEqual([]);
  });

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

  test("with the provider states what to do to a person in no team", async () => {
    const page = await continueAs("bob", "/");
    await page.getByText("Ask an owner of a team to invite bob@example.com").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Other ways to sign in" }).click();
    await isSignedOut(page);
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
