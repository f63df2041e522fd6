import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ConsoleSession, expectAccessible, inBrowser, signIn, type ConsolePage } from "../support/browser.ts";
import type { Client } from "../support/client.ts";
import { script, startRun, waitForState } from "../support/runs.ts";
import { teamOf } from "../support/resources.ts";

inBrowser("the console's pages of the platform and the team", () => {
  let session: ConsoleSession;
  let api: Client;
  let team: string;
  let page: ConsolePage;
  beforeAll(async () => {
    session = await ConsoleSession.start();
    ({ api } = session);
    team = await teamOf(api);
    page = await session.newPage();
    await signIn(page, "/workers");
  });
  afterAll(async () => {
    await session?.remove();
  });

  test("lists connected workers and models", async () => {
    await page.getByText("No worker of the team is connected").waitFor();
    await expectAccessible(page);
    const now = new Date().toISOString();
    const worker = {
      ...{ worker_host: "builder-1", connection_count: 2, connected_at: now, last_seen_at: now },
      ...{ sandbox: "bubblewrap", sandbox_features: ["network"] },
    };
    await page.route("**/connected-self-hosted-workers", (route) => route.fulfill({ json: { workers: [worker] } }));
    await page.getByRole("cell", { name: "builder-1" }).waitFor();
    await expectAccessible(page);
    await page.unrouteAll({ behavior: "wait" });
    await page.goto("/models");
    await page.getByText("Default", { exact: true }).waitFor();
    await page.getByLabel("Search models").fill("no such model");
    await page.getByText("No model matches the search").waitFor();
    expect(new URL(page.url()).searchParams.get("q")).toBe("no such model");
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
  });

  test("creates, edits and deletes an environment", async () => {
    await page.goto("/environments");
    await page.getByRole("button", { name: "Create environment" }).first().click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("<b>Node</b>");
    await dialog.getByLabel("Setup commands, one per line").fill("npm ci\nnpm test");
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { name: "<b>Node</b>" }).waitFor();
    const { environments } = await api.get("/agent/environments");
    expect(environments[0].config).toMatchObject({ name: "<b>Node</b>", setup_commands: ["npm ci", "npm test"] });
    await page.getByRole("button", { name: "Edit" }).click();
    await dialog.getByLabel("Setup commands, one per line").fill("npm ci");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    expect((await api.get(`/agent/environments/${environments[0].uid}`)).config.setup_commands).toEqual(["npm ci"]);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Delete" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("No environments yet").waitFor();
    expect(page.problems).toEqual([]);
  });

  test("stores, replaces and deletes a secret without showing its value", async () => {
    await page.goto("/secrets");
    await page.getByText("No secrets yet").waitFor();
    await page.getByRole("button", { name: "Add secret" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("DEPLOY_TOKEN");
    await dialog.getByLabel("Value").fill("canary-value-1");
    await dialog.getByRole("button", { name: "Store" }).click();
    await page.getByRole("button", { name: "Replace DEPLOY_TOKEN" }).click();
    await dialog.getByLabel("Value").fill("canary-value-2");
    await dialog.getByRole("button", { name: "Store" }).click();
    await page.getByRole("cell", { name: "2", exact: true }).waitFor();
    expect(await page.content()).not.toContain("canary-value");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Delete DEPLOY_TOKEN" }).click();
    await dialog.getByRole("button", { name: "Delete" }).click();
    await page.getByText("No secrets yet").waitFor();
    expect((await api.get(`/team/${team}/secrets`)).secrets).toEqual([]);
    expect(page.problems).toEqual([]);
  });

  test("shows a new key once, which works until it is revoked", async () => {
    await page.goto("/keys");
    await page.getByRole("button", { name: "Create key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("Nightly script");
    await dialog.getByLabel("Expires").selectOption("30");
    await dialog.getByLabel("run.view").check();
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Key created" }).waitFor();
    const key = await dialog.locator(".shown-once code").innerText();
    expect((await api.as(key).get("/whoami")).teams[0].permissions).toEqual(["run.view"]);
    await expectAccessible(page);
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Revoke Nightly script" }).waitFor();
    expect(await page.content()).not.toContain(key);
    await expectAccessible(page);

    const restricted = await session.newPage();
    await signIn(restricted, "/secrets", key);
    await restricted.getByText("Your key may not read this page").waitFor();
    await restricted.goto("/settings");
    expect(await restricted.getByRole("button", { name: "Save" }).isDisabled()).toBe(true);
    expect(restricted.problems).toEqual([]);

    await page.getByRole("button", { name: "Revoke Nightly script" }).click();
    await dialog.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("button", { name: "Revoke Nightly script" }).waitFor({ state: "detached" });
    expect((await api.as(key).call("GET", "/whoami")).status).toBe(401);
    expect(page.problems).toEqual([]);
  });

  test("adds a new person with a first key, changes the role and removes the person", async () => {
    await page.goto("/members");
    await page.getByRole("button", { name: "Add member" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("E-mail").fill("new@example.com");
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("heading", { name: "Member added" }).waitFor();
    const key = await dialog.locator(".shown-once code").innerText();
    expect((await api.as(key).get("/whoami")).principal.email).toBe("new@example.com");
    await dialog.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "Change role of new@example.com" }).click();
    await dialog.getByLabel("Role").selectOption("viewer");
    await dialog.getByRole("button", { name: "Change" }).click();
    await page.getByRole("cell", { name: "viewer" }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Remove new@example.com" }).click();
    await dialog.getByRole("button", { name: "Remove" }).click();
    await page.getByRole("cell", { name: "new@example.com", exact: true }).waitFor({ state: "detached" });
    expect(page.problems).toEqual([]);
  });

  test("invites a person who already uses the platform", async () => {
    const { api_key: key } = await api.post("/team", { name: "Others", owner_email: "other@example.com" });
    const { api_key: own } = await api.as(key).post(`/team/${await teamOf(api.as(key))}/keys`, { name: "Mine" });
    await page.goto("/members");
    await page.getByRole("button", { name: "Add member" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("E-mail").fill("other@example.com");
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await page.getByRole("button", { name: "Revoke the invitation of other@example.com" }).waitFor();
    await expectAccessible(page);
    const theirs = await session.newPage();
    await signIn(theirs, "/members", own);
    await theirs.getByRole("button", { name: /^Join / }).click();
    await theirs.getByRole("button", { name: /^Join / }).waitFor({ state: "detached" });
    const { members } = await api.get(`/team/${team}/members`);
    expect(members.map(({ email }: { email: string }) => email)).toContain("other@example.com");
    expect(theirs.problems).toEqual([]);
  });

  test("shows the audit log with the payload of an entry", async () => {
    await page.goto("/audit");
    await page
      .getByRole("button", { name: /^Details of / })
      .first()
      .click();
    await page.getByRole("dialog").getByLabel("Payload", { exact: true }).waitFor();
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
  });

  test("changes the settings of the team", async () => {
    await page.goto("/settings");
    await page.getByLabel("Runs at the same time").fill("7");
    await page.getByLabel("JSON, as in").fill("no object");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The defaults must be one JSON object.").waitFor();
    await page.getByLabel("JSON, as in").fill('{ "step_limit": 50 }');
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("The settings are saved.").waitFor();
    expect(await api.get(`/team/${team}`)).toMatchObject({ concurrency_limit: 7, agent_defaults: { step_limit: 50 } });
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
  });

  test("shows what waits for a person in the header and as a list", async () => {
    await page.getByRole("link", { name: "Nothing waits for you" }).waitFor();
    await waitForState(api, await startRun(api, script("ask: Which file?"), { title: "Unsure" }), "BLOCKED");
    await page.getByRole("link", { name: "1 waiting for you" }).click();
    await page.getByRole("table", { name: "Blocked runs" }).getByRole("link", { name: "Unsure" }).waitFor();
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
  });

  test("finds the pages in the command palette", async () => {
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder("Search pages, factories, runs, actions…").fill("audit");
    await page.getByRole("option", { name: "Audit log" }).click();
    await page.getByRole("heading", { name: "Audit log" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/audit");
  });
});
