import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ConsoleSession, expectAccessible, inBrowser, signIn, type ConsolePage } from "../support/browser.ts";
import type { Client } from "../support/client.ts";
import { script, startRun, succeeded } from "../support/runs.ts";
import { aTeam, teamOf } from "../support/resources.ts";

inBrowser("the console", () => {
  let session: ConsoleSession;
  let api: Client;
  let page: ConsolePage;
  beforeAll(async () => {
    session = await ConsoleSession.start();
    ({ api } = session);
    await succeeded(api, await startRun(api, script("say: Hello."), { title: "First" }));
    page = await session.newPage();
  });
  afterAll(async () => {
    await session?.remove();
  });

  test("asks for a key, refuses a wrong one, and opens the requested page with the right one", async () => {
    await page.goto("/runs?state=SUCCEEDED");
    await page.getByLabel("API key").fill("mw_wrong_wrong_wrong");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("alert").waitFor();
    await expectAccessible(page);
    await signIn(page, "/runs?state=SUCCEEDED");
    await page.getByRole("link", { name: "First" }).waitFor();
    expect(new URL(page.url()).search).toBe("?state=SUCCEEDED");
    expect(page.problems).toEqual([]);
  });

  test("has no accessibility violation on the run list", async () => {
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
  });

  test("shows a new run without a reload, and again after the connection was lost", async () => {
    await page.goto("/runs");
    await page.getByText("Live", { exact: true }).waitFor();
    await succeeded(api, await startRun(api, script("say: Two."), { title: "Second" }));
    await page.getByRole("link", { name: "Second" }).waitFor();
    await page.context().setOffline(true);
    await page.getByText("Reconnecting…").waitFor();
    await succeeded(api, await startRun(api, script("say: Three."), { title: "Third" }));
    await page.context().setOffline(false);
    await page.getByRole("link", { name: "Third" }).waitFor();
    expect(await page.getByRole("link", { name: "Third" }).count()).toBe(1);
  });

  test("keeps filters in the URL and clears them", async () => {
    await page.goto("/runs");
    await page.getByRole("link", { name: "First" }).waitFor();
    await page.getByLabel("Search runs").fill("Second");
    await page.getByRole("link", { name: "First" }).waitFor({ state: "detached" });
    expect(new URL(page.url()).search).toBe("?q=Second");
    await page.reload();
    await page.getByRole("link", { name: "Second" }).waitFor();
    await page.getByRole("button", { name: "Clear" }).click();
    await page.getByRole("link", { name: "First" }).waitFor();
    expect(new URL(page.url()).search).toBe("");
  });

  test("opens a run by a click beside its link", async () => {
    await page.getByRole("row", { name: /Third/ }).getByText("Succeeded").click();
    await page.getByRole("heading", { name: "Third" }).waitFor();
    await page.goBack();
    await page.getByRole("link", { name: "Third" }).waitFor();
    expect(page.problems).toEqual([]);
  });

  test("opens the command palette by keyboard and finds runs", async () => {
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "Dispatch work" }).waitFor();
    await page.keyboard.type("Third");
    await page.getByRole("option", { name: /Third/ }).waitFor();
    await page.getByRole("option", { name: "Dispatch work" }).waitFor({ state: "detached" });
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    expect(page.problems).toEqual([]);
  });

  test("switches teams, and asks for a key again when the key is revoked", async () => {
    const other = await aTeam(api, "other");
    const theirs = await session.newPage();
    await signIn(theirs, "/runs", other.key);
    await theirs.getByText("No runs yet").waitFor();
    const team = await teamOf(other);
    const { keys } = await other.get(`/team/${team}/keys`);
    await other.delete(`/team/${team}/keys/${keys[0].uid}`);
    await theirs.getByRole("button", { name: "Source" }).waitFor();
    await theirs.getByLabel("Search runs").fill("anything");
    await theirs.getByLabel("API key").waitFor();
    expect(theirs.problems).toEqual([]);
  });

  test("signs out", async () => {
    await page.getByRole("button", { name: "Owner" }).click();
    await page.getByRole("menuitem", { name: "Sign out", exact: true }).click();
    await page.getByLabel("API key").waitFor();
    expect(page.problems).toEqual([]);
  });
});
