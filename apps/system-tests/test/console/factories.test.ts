import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ConsoleSession, expectAccessible, inBrowser, signIn, type ConsolePage } from "../support/browser.ts";
import type { Client } from "../support/client.ts";
import { script } from "../support/runs.ts";
import { aFactory, definitionFiles, teamOf } from "../support/resources.ts";

const RUNNER = {
  path: "runners/big.yaml",
  content: "platform:\n  linux:\n    dockerImage: node:24\ninstanceShape:\n  vcpus: 8\n  memoryGb: 32\n",
};
const SKILL = {
  path: "skills/test-first/SKILL.md",
  content: "---\nname: test-first\ndescription: How to test first.\n---\n\nRun the tests first.\n",
};

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
    factory = await aFactory(api, [...definitionFiles(script("say: Hello.")), SKILL, RUNNER]);
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

  test("list the skills of the definition", async () => {
    await page.getByRole("link", { name: "Skills" }).click();
    await page.getByRole("cell", { name: "test-first How to test first." }).waitFor();
    await page.getByRole("cell", { name: "skills/test-first/SKILL.md" }).waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Definition", exact: true }).click();
    await page.getByText("No drift").waitFor();
    expect(page.problems).toEqual([]);
  });

  test("show the runners of the definition", async () => {
    await page.getByRole("link", { name: "Agents" }).click();
    await page.getByText("big", { exact: true }).click();
    await page.getByRole("region", { name: "Content of runners/big.yaml" }).getByText("vcpus: 8").waitFor();
    await expectAccessible(page);
    await page.getByRole("link", { name: "Definition", exact: true }).click();
    await page.getByText("No drift").waitFor();
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
    await page.getByRole("navigation", { name: "Breadcrumb" }).getByText("alerts", { exact: true }).waitFor();
    await page.getByText("Trigger 1 does not match", { exact: true }).waitFor();
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

  test("create a webhook whose secret is shown once, rotate it and edit it", async () => {
    await page.getByRole("link", { name: "Webhooks" }).click();
    await page.getByRole("button", { name: "Create webhook" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("monitoring");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    const shown = page.getByRole("dialog", { name: "Secret of monitoring" });
    const secretOf = async () => (await shown.locator(".shown-once code").textContent())!;
    await shown.waitFor();
    const first = await secretOf();
    await expectAccessible(page);
    await shown.getByRole("button", { name: "Done" }).click();
    await page.getByRole("link", { name: "monitoring", exact: true }).click();
    await page.getByRole("button", { name: "Rotate secret" }).click();
    await page.getByRole("button", { name: "Rotate", exact: true }).click();
    await shown.waitFor();
    const second = await secretOf();
    expect(second).not.toBe(first);
    await shown.getByRole("button", { name: "Done" }).click();
    const { webhooks } = await api.get(`/factory/${factory}/webhooks`);
    const { ingress_url: url } = webhooks.find(({ name }: any) => name === "monitoring");
    const send = async (secret: string) =>
      (await api.fetch(url, { method: "POST", headers: { authorization: `Bearer ${secret}` }, body: "{}" })).status;
    expect([await send(first), await send(second)]).toEqual([401, 202]);
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("alerting");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: "alerting" }).waitFor();
    expect(page.problems).toEqual([]);
  });

  test("create an automation with a filter and edit its prompt", async () => {
    await page.getByRole("link", { name: "Automations" }).click();
    await page.getByRole("button", { name: "Create automation" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("on alert");
    await page.getByRole("dialog").getByLabel("Prompt").fill("Look at the alert.");
    const json = page.getByRole("dialog").getByLabel("Filter (JSON)");
    await page.getByText("Filter as JSON").click();
    await page.getByRole("dialog").getByLabel("Webhook").selectOption("ci");
    expect(JSON.parse(await json.inputValue())).toEqual({ webhook_ids: [webhook.uid] });
    await page.getByLabel("Provider").selectOption("factory");
    await page
      .getByRole("group", { name: /^To the stages/ })
      .getByLabel("Review")
      .check();
    await page.getByText("Filter as JSON").click();
    expect(JSON.parse(await json.inputValue())).toEqual({ stages: ["REVIEW"] });
    await expectAccessible(page);
    await page.getByLabel("Provider").selectOption("webhook");
    await page.getByText("Filter as JSON").click();
    expect(await json.inputValue()).toBe("");
    await json.fill("{");
    await page.getByText("The filter of trigger 1 is not JSON.").waitFor();
    expect(await page.getByRole("button", { name: "Create", exact: true }).isDisabled()).toBe(true);
    const filter = { webhook_ids: [webhook.uid], payload: { status: ["firing"] } };
    await json.fill(JSON.stringify(filter));
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("link", { name: "on alert" }).click();
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByRole("dialog").getByLabel("Prompt").fill("Find the cause.");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("region", { name: "Prompt" }).getByText("Find the cause.").waitFor();
    const { automations } = await api.get(`/factory/${factory}/automations`);
    expect(automations.find(({ name }: any) => name === "on alert")).toMatchObject({
      prompt: "Find the cause.",
      enabled: true,
      triggers: [
        { provider: "webhook", event: "received", filter: { ...filter, webhook_ids: { in: filter.webhook_ids } } },
      ],
    });
    expect(page.problems).toEqual([]);
  });

  test("create a factory from the template, which receives work after its definition is applied", async () => {
    await page.goto("/factories");
    await page.getByRole("button", { name: "Create factory" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Mill");
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { name: "Mill" }).waitFor();
    const notice = page.getByRole("status").filter({ hasText: "No definition is applied yet" });
    await notice.waitFor();
    await page.getByRole("link", { name: "Board" }).click();
    await page.getByRole("button", { name: "Dispatch work", disabled: true }).waitFor();
    await expectAccessible(page);
    await notice.getByRole("link", { name: "Plan and apply" }).click();
    await page.getByRole("button", { name: "Plan", exact: true }).click();
    await page.getByRole("table", { name: "Changes" }).getByRole("cell", { name: "implementer" }).waitFor();
    await page.getByRole("button", { name: "Apply" }).click();
    await page.getByRole("link", { name: "Dispatch work" }).click();
    await page.getByRole("dialog", { name: "Dispatch work to Mill" }).waitFor();
    await page.getByRole("button", { name: "Insert an example script" }).click();
    expect(await page.getByLabel("What is to be done?").inputValue()).toMatch(/^```scripted\n- say: /);
    expect(await page.getByRole("button", { name: "Dispatch", exact: true }).isEnabled()).toBe(true);
    await expectAccessible(page);
    await page.getByRole("button", { name: "Cancel" }).click();
    expect(page.problems).toEqual([]);
  });

  test("create a schedule with the preview of its times, and edit it", async () => {
    await page.goto("/schedules");
    await page.getByRole("button", { name: "Create schedule" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("weekly");
    await page.getByRole("dialog").getByLabel("Prompt").fill(script("say: Weekly."));
    await page.getByRole("dialog").getByLabel(/^Cron/).fill("0 9 * *");
    await page.getByRole("alert").waitFor();
    expect(await page.getByRole("button", { name: "Create", exact: true }).isDisabled()).toBe(true);
    await page.getByRole("dialog").getByLabel(/^Cron/).fill("0 9 * * 1");
    await page.getByRole("dialog").getByLabel("Time zone").fill("Europe/Berlin");
    const preview = page.getByRole("dialog").getByRole("table", { name: "Next ten times" });
    const [first] = await preview
      .locator("time")
      .evaluateAll((times) => times.map((time) => time.getAttribute("datetime")));
    await expectAccessible(page);
    await page.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { name: "weekly" }).waitFor();
    const id = new URL(page.url()).pathname.split("/").at(-1)!;
    expect(new Date((await api.get(`/agent/schedules/${id}`)).history.next_run).toISOString()).toBe(first);
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    await page.getByRole("dialog").getByLabel("If a run is still active").selectOption("allow");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("allow", { exact: true }).waitFor();
    expect(await api.get(`/agent/schedules/${id}`)).toMatchObject({
      name: "weekly",
      cron_schedule: "0 9 * * 1",
      time_zone: "Europe/Berlin",
      overlap_policy: "allow",
      enabled: true,
    });
    expect(page.problems).toEqual([]);
  });

  test("are found in the command palette, with tasks, agents and actions", async () => {
    await page.keyboard.press("Control+k");
    const input = page.getByPlaceholder("Search pages, factories, runs, actions…");
    for (const [text, option] of [
      ["Steelw", /^Steelworks/],
      ["help", /^helper/],
      ["on al", /^on alert/],
      ["week", /^weekly/],
    ] as const) {
      await input.fill(text);
      await page.getByRole("option", { name: option }).first().waitFor();
    }
    await expectAccessible(page);
    await input.fill("Create sched");
    await page.getByRole("option", { name: "Create schedule" }).click();
    await page.getByRole("dialog", { name: "Create a schedule" }).waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    expect(page.problems).toEqual([]);
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
    await page.reload();
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
