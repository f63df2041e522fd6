import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ConsoleSession, expectAccessible, inBrowser, signIn, type ConsolePage } from "../support/browser.ts";
import type { Client } from "../support/client.ts";
import { script } from "../support/runs.ts";
import { aFactory, definitionFiles, teamOf } from "../support/resources.ts";

inBrowser("the factory and schedule pages", () => {
  let session: ConsoleSession;
  let api: Client;
  let page: ConsolePage;
  let factory: string;
  let webhook: { uid: string; ingress_url: string; secret: string };
  let automation: string;

  const deliver = (body: object) =>
    api.fetch(webhook.ingress_url, {
      method: "POST",
      headers: { authorization: `Bearer ${webhook.secret}` },
      body: JSON.stringify(body),
    });

  beforeAll(async () => {
    session = await ConsoleSession.start();
    ({ api } = session);
    factory = await aFactory(api, definitionFiles(script("say: Hello.")));
    webhook = await api.post(`/factory/${factory}/webhooks`, { name: "ci" });
    ({ uid: automation } = await api.post(`/factory/${factory}/automations`, {
      name: "alerts",
      agent: "helper",
      prompt: script("say: Done."),
      triggers: [
        {
          provider: "webhook",
          event: "received",
          filter: { webhook_ids: [webhook.uid], payload: { status: ["firing"] } },
        },
      ],
    }));
    await deliver({ status: "firing", text: "<img src=x onerror=alert(1)>" });
    await deliver({ status: "resolved" });
    page = await session.newPage();
    await signIn(page, "/factories");
  });
  afterAll(async () => {
    await session?.remove();
  });

  test("list factories and open the definition without drift", async () => {
    await page.getByRole("link", { name: "Works" }).click();
    await page.getByText("No drift").waitFor();
    await page.getByText("The registered source is the active version.").waitFor();
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
  });

  test("show how the registered source differs from the active version", async () => {
    await api.put(`/factory/${factory}/source`, { files: definitionFiles("Go.", "Answer.") });
    await page.reload();
    await page
      .getByRole("table", { name: "Changes of the registered source" })
      .getByRole("cell", { name: "helper" })
      .waitFor();
    expect(page.problems).toEqual([]);
  });

  test("plan files with an error at its position, then apply the corrected files", async () => {
    await page.getByRole("navigation", { name: "Factory" }).getByRole("link", { name: "Plan and apply" }).click();
    await page.getByLabel("File", { exact: true }).selectOption("factory.yaml");
    const text = page.getByLabel("Content of factory.yaml");
    const valid = await text.inputValue();
    await text.fill(`${valid}unknownKey: 1\n`);
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await page.getByRole("button", { name: /^factory\.yaml:6:/ }).click();
    expect(await page.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
    await expectAccessible(page);
    await text.fill(valid.replace("name: Works", "name: Steelworks"));
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await page.getByRole("table", { name: "Changes" }).waitFor();
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("heading", { name: "Steelworks" }).waitFor();
  });

  test("list agents, and state that branches need a repository", async () => {
    await page.getByRole("link", { name: "Agents" }).click();
    await page.getByRole("cell", { name: /^helper/ }).waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Branches" }).click();
    await page.getByText("The definition is not in a repository").waitFor();
    expect(page.problems).toEqual([]);
  });

  test("explain why an automation fired and did not fire", async () => {
    await page.getByRole("link", { name: "Automations" }).click();
    await page.getByRole("link", { name: "alerts" }).click();
    await page.getByText("Fired", { exact: true }).waitFor();
    await page.getByText("Not matched", { exact: true }).waitFor();
    await page.getByText("does not match", { exact: true }).waitFor();
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
  });

  test("show a delivery as text and replay it, dry and with a run", async () => {
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("link", { name: "ci", exact: true }).click();
    await page
      .getByRole("row", { name: /alerts/ })
      .getByRole("link")
      .first()
      .click();
    await page.getByRole("region", { name: "Payload" }).getByText("<img src=x onerror=alert(1)>").waitFor();
    await page.getByRole("button", { name: "Dry replay" }).click();
    await page.getByRole("heading", { name: "Would trigger" }).waitFor();
    await expectAccessible(page);
    const runsBefore = (await api.get(`/agent/runs?automation_id=${automation}`)).runs.length;
    await page.getByRole("button", { name: "Replay", exact: true }).click();
    await page.getByRole("heading", { name: /^Replayed: (?:fired|pending)/ }).waitFor();
    await page.getByRole("link", { name: "All deliveries" }).click();
    await page.getByRole("row", { name: /alerts alerts/ }).waitFor();
    expect((await api.get(`/agent/runs?automation_id=${automation}`)).runs.length).toBe(runsBefore + 1);
  });

  test("open the event that the trigger link of a run names", async () => {
    const [run] = (await api.get(`/agent/runs?automation_id=${automation}`)).runs;
    await page.goto(run.trigger_url);
    await page.waitForURL(/\/decisions\?event=/);
    await page.getByText("Fired", { exact: true }).first().waitFor();
    expect(page.problems).toEqual([]);
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("link", { name: "ci", exact: true }).click();
  });

  test("show which stored deliveries a filter matches, and keep the filter in the URL", async () => {
    await page.getByRole("link", { name: "Filter editor" }).click();
    await page.getByText("2 of the newest 2 accepted deliveries match.").waitFor();
    await page.getByLabel("Payload filter").fill('{"status": ["resolved"]}');
    await page.getByText("1 of the newest 2 accepted deliveries match.").waitFor();
    await page.getByRole("cell", { name: "Would not trigger" }).waitFor();
    expect(new URL(page.url()).searchParams.get("filter")).toBe('{"status": ["resolved"]}');
    await page.getByLabel("Payload filter").fill("{");
    await page.getByText(/The filter is not JSON/).waitFor();
    await expectAccessible(page);
  });

  test("disable what a key may not do", async () => {
    const { api_key: key } = await api.post(`/team/${await teamOf(api)}/keys`, {
      name: "reader",
      scopes: ["factory.view", "run.view"],
    });
    const reader = await session.newPage();
    await signIn(reader, `/factories/${factory}/automations/${automation}`, key);
    await reader.getByRole("heading", { name: "alerts" }).waitFor();
    expect(await reader.getByRole("button", { name: "Run now" }).isDisabled()).toBe(true);
    expect(await reader.getByRole("button", { name: "Disable" }).isDisabled()).toBe(true);
    await reader.getByRole("link", { name: "Webhooks" }).click();
    await reader.getByRole("alert").waitFor();
    expect(reader.problems).toEqual([]);
  });

  test("show a schedule's next ten times, pause and resume it, and run it now", async () => {
    const { id } = await api.post("/agent/schedules", {
      name: "nightly",
      cron_schedule: "0 3 * * *",
      time_zone: "Europe/Berlin",
      prompt: script("say: Good night."),
    });
    await page.goto("/schedules");
    await page.getByRole("link", { name: "nightly" }).click();
    await page.getByRole("table", { name: "Next ten times" }).waitFor();
    expect(await page.getByRole("table", { name: "Next ten times" }).getByRole("row").count()).toBe(11);
    const [first] = await page
      .getByRole("table", { name: "Next ten times" })
      .locator("time")
      .evaluateAll((times) => times.map((time) => time.getAttribute("datetime")));
    expect(first).toBe(new Date((await api.get(`/agent/schedules/${id}`)).history.next_run).toISOString());
    await page.getByText("No slots yet").waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByText("Next ten times if resumed").waitFor();
    expect((await api.get(`/agent/schedules/${id}`)).enabled).toBe(false);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByRole("heading", { name: "nightly" }).waitFor();
    await page.waitForURL(/\/runs\//);
    expect(page.problems).toEqual([]);
  });
});
