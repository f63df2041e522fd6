import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { bareRepository } from "@millwright/test-platform";
import { eventually } from "@millwright/testing";
import { ConsoleSession, expectAccessible, inBrowser, signIn, type ConsolePage } from "../support/browser.ts";
import type { Client } from "../support/client.ts";
import { eventsOf, waitForState, RUN_TIMEOUT_MS, script, startRun, succeeded } from "../support/runs.ts";
import { aFactory, aTeam, teamOf } from "../support/resources.ts";

const FOREMAN = script(
  "shell: cd /workspace/prices && cat src/a.txt",
  "edit: {path: src/a.txt, old: old, new: new}",
  "pull_request: {title: Use new prices, body: Better.}",
  "ask: Is that enough?",
  "say: Thank you for the answer.",
);

inBrowser("the console", () => {
  let session: ConsoleSession;
  let api: Client;
  let page: ConsolePage;
  let runId: string;
  beforeAll(async () => {
    session = await ConsoleSession.start();
    ({ api } = session);
    const root = session.platform.path("repositories");
    bareRepository(root, "acme", "prices", { "src/a.txt": "old\n" });
    await api.post(`/team/${await teamOf(api)}/code-hosts`, { name: "local", kind: "local", root, owners: ["acme"] });
    await aFactory(api, [
      {
        path: "factory.yaml",
        content:
          "schemaVersion: v1alpha1\nname: Works\nrepositories:\n  - owner: acme\n    name: prices\nagentDefaults:\n  model: auto\n",
      },
      {
        path: "agents/foreman/agent.md",
        content: `---\ndescription: Receives work.\nagentType: FOREMAN\n---\n\nYou are the foreman.\n\n${FOREMAN}\n`,
      },
    ]);
    page = await session.newPage();
    page.setDefaultTimeout(RUN_TIMEOUT_MS);
    await signIn(page, "/work");
  });
  afterAll(async () => {
    await session?.remove();
  });

  test("dispatches work and follows its run live", async () => {
    await page.keyboard.press("Control+k");
    await page.getByRole("option", { name: "Dispatch work" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("dialog", { name: "Dispatch work to Works" }).waitFor();
    await page.keyboard.type("Use the new prices.");
    await page.getByLabel("Title (optional)").fill("New prices");
    await expectAccessible(page);
    await page.getByLabel("What is to be done?").press("Control+Enter");
    await page.getByRole("heading", { name: "New prices" }).waitFor();
    await page.locator("#content:focus").waitFor();
    expect(await page.locator("time").allTextContents()).not.toContainEqual(expect.stringMatching(/^in /));
    runId = new URL(page.url()).pathname.split("/")[2]!;
    const timeline = page.getByRole("region", { name: "Steps of the run" });
    await timeline.getByText("Use the new prices.").waitFor();
    await timeline.getByText("Opened pull request").waitFor();
    await page.getByText("Is that enough?").first().waitFor();
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
  });

  test("sends a follow-up that continues the run, and shows each step once", async () => {
    await page
      .getByLabel("Attach files")
      .setInputFiles({ name: "notes.txt", mimeType: "text/plain", buffer: Buffer.from("It is enough.") });
    await page.getByRole("list", { name: "Attached files" }).getByText("notes.txt").waitFor();
    await page.getByLabel("Follow-up").fill("Yes, it is.");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByText("Thank you for the answer.").waitFor();
    await succeeded(api, runId);
    await page.getByRole("button", { name: "Retry" }).waitFor();
    await page.getByRole("status").filter({ hasText: "No AI model is configured" }).waitFor();
    const details = page.getByRole("complementary", { name: "Details of the run" });
    await details.getByText("Harness", { exact: true }).waitFor();
    expect(await details.getByText("Ticket").count()).toBe(0);
    const last = (await eventsOf(api, runId)).at(-1).seq;
    await page.getByText(`${last} events`).waitFor();
    expect(await page.getByText("Thank you for the answer.").count()).toBe(1);
  });

  test("shows the conversation with its run, messages, commands and pull request", async () => {
    await page.getByRole("link", { name: "Open", exact: true }).click();
    await page.waitForURL(/\/conversations\//);
    const details = page.getByRole("complementary", { name: "Details of the conversation" });
    await details.getByRole("link", { name: "New prices" }).waitFor();
    await details.getByRole("link", { name: /open/ }).waitFor();
    const messages = page.getByRole("region", { name: "Messages" });
    await messages.getByText("Use the new prices.").waitFor();
    await messages.getByText("Thank you for the answer.").waitFor();
    await messages.getByRole("region", { name: "Input and output of edit_files" }).waitFor();
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
    await details.getByRole("link", { name: "New prices" }).click();
    await page.getByRole("button", { name: "Retry" }).waitFor();
  });

  test("has the commands that continue the work on the own machine", async () => {
    await page.getByRole("button", { name: "Hand over" }).click();
    await page
      .getByRole("region", { name: "Commands" })
      .getByText("npx millwright run local --title 'Continue: New prices' -- npm test")
      .waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Close", exact: true }).click();
    expect(page.problems).toEqual([]);
  });

  test("shows plans, texts and images of a run, also in its steps", async () => {
    const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    const id = await startRun(
      api,
      script(
        `shell: printf '%s' ${png} | base64 -d > dot.png; printf '# Report <b>' > report.md`,
        "plan: {title: The plan, markdown: '## First step'}",
        "artifact: {file: report.md, title: The report}",
        "screenshot: {file: dot.png, description: A dot}",
      ),
      { title: "Artifacts" },
    );
    await succeeded(api, id);
    await page.goto(`/runs/${id}`);
    const image = page.getByRole("region", { name: "Steps of the run" }).getByRole("img", { name: "A dot" });
    await eventually(async () => (await image.evaluate((element: any) => element.naturalWidth)) === 1);
    await expectAccessible(page);
    const card = page.getByRole("complementary", { name: "Details of the run" });
    await card.getByRole("button", { name: "The plan" }).click();
    await page.getByRole("heading", { name: "First step" }).waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).click();
    await card.getByRole("button", { name: "The report" }).click();
    await page.getByRole("heading", { name: "Report <b>" }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Close", exact: true }).click();
    await card.getByRole("button", { name: "A dot" }).click();
    await page.getByRole("dialog").getByRole("img", { name: "A dot" }).waitFor();
    expect(page.problems).toEqual([]);
    await page.goto(`/runs/${runId}`);
    await page.getByRole("button", { name: "Retry" }).waitFor();
  });

  test("lists the artifacts of all runs by type", async () => {
    await page.goto("/artifacts");
    await page.getByRole("button", { name: "The report" }).waitFor();
    await expectAccessible(page);
    await page.getByRole("button", { name: "Plans" }).click();
    await page.getByRole("button", { name: "The plan" }).click();
    await page.getByRole("heading", { name: "First step" }).waitFor();
    await page.getByRole("button", { name: "Close", exact: true }).click();
    await page.getByRole("button", { name: "Pull requests" }).click();
    await page
      .getByRole("row", { name: /New prices/ })
      .getByRole("link", { name: /open/ })
      .waitFor();
    await page.reload();
    await page.getByRole("row", { name: /New prices/ }).waitFor();
    await page.getByLabel("Search runs").fill("no such run");
    await page.getByText("No artifact matches the filters").waitFor();
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
    await page.goto(`/runs/${runId}`);
    await page.getByRole("button", { name: "Retry" }).waitFor();
  });

  test("states without an AI model what to do, and copies a script with its fence", async () => {
    const id = await startRun(api, "Add a greeting.", { title: "Unread" });
    await waitForState(api, id, "BLOCKED");
    await page.goto(`/runs/${id}`);
    const notice = page.getByRole("status").filter({ hasText: "No AI model is configured" });
    await notice.getByRole("link", { name: "Add a provider key" }).waitFor();
    expect(await notice.textContent()).not.toContain("```");
    const block = page.getByRole("region", { name: "Steps of the run" }).locator(".code-block");
    expect(await block.locator("pre").textContent()).toMatch(/^```scripted\n- say: [^]*\n```\n$/);
    await block.getByRole("button", { name: "Copy code" }).waitFor();
    await expectAccessible(page);
    expect(page.problems).toEqual([]);
    await page.goto(`/runs/${runId}`);
    await page.getByRole("button", { name: "Retry" }).waitFor();
  });

  test("links to a step", async () => {
    await page.getByText(/^\d+ events$/).waitFor();
    await page.getByRole("button", { name: "All events" }).click();
    const link = page.getByRole("link", { name: /^Link to step/ }).last();
    const seq = /\d+$/.exec((await link.getAttribute("aria-label"))!)![0];
    await link.click();
    await page.reload();
    await page
      .locator(".step.target")
      .getByRole("link", { name: `Link to step ${seq}` })
      .waitFor();
    expect(page.problems).toEqual([]);
  });

  test("shows the pull request with its diff", async () => {
    await page.getByRole("complementary", { name: "Details of the run" }).getByRole("link", { name: /open/ }).click();
    await page.getByRole("heading", { name: "Use new prices #1" }).waitFor();
    await page.getByRole("row", { name: "+ new" }).waitFor();
    await expectAccessible(page);
    await page.reload();
    await page.getByRole("row", { name: "+ new" }).waitFor();
    expect(page.problems).toEqual([]);
  });

  test("has the task on the board, which moves by menu and by keyboard", async () => {
    await page.goto("/work");
    const column = (name: string) => page.getByRole("region", { name, exact: true });
    const card = column("Triage").getByRole("link", { name: "New prices" });
    await card.waitFor();
    await expectAccessible(page);
    await card.press("Alt+ArrowRight");
    await column("Spec").getByRole("link", { name: "New prices" }).waitFor();
    await page.getByRole("button", { name: "Move New prices" }).click();
    await page.getByRole("menuitemcheckbox", { name: "Review" }).click();
    await column("Review").getByRole("link", { name: "New prices" }).waitFor();
    await column("Review").getByRole("listitem").dragTo(column("Complete"));
    await column("Complete").getByRole("link", { name: "New prices" }).waitFor();
    expect(page.problems).toEqual([]);
  });

  test("shows the events of a run once when the connection is lost and comes back", async () => {
    const id = await startRun(api, script("say: before", "ask: Go on?", "say: after"), { title: "Lost" });
    await waitForState(api, id, "BLOCKED");
    await page.goto(`/runs/${id}`);
    await page.getByText("before", { exact: true }).waitFor();
    await page.context().setOffline(true);
    await page.getByText("Reconnecting…").waitFor();
    await api.post(`/agent/runs/${id}/followups`, { message: "Go on." });
    await succeeded(api, id);
    await page.context().setOffline(false);
    await page.getByText("after", { exact: true }).waitFor();
    await page.getByRole("button", { name: "All events" }).click();
    const last = (await eventsOf(api, id)).at(-1).seq;
    await page.getByText(`${last} events`).waitFor();
    for (const text of ["before", "after"]) expect(await page.getByText(text, { exact: true }).count()).toBe(1);
  });

  test("shows a run by its session link without signing in, to read only", async () => {
    const { session_link: link } = await api.get(`/agent/runs/${runId}`);
    const reader = await session.newPage();
    await reader.goto(link);
    await reader.getByText("Thank you for the answer.").waitFor();
    expect(await reader.getByRole("button", { name: "Retry" }).isDisabled()).toBe(true);
    await reader.getByRole("link", { name: /open/ }).click();
    await reader.getByRole("row", { name: "+ new" }).waitFor();
    expect(reader.problems).toEqual([]);
  });

  test("shows the same for another team's run as for one that does not exist", async () => {
    const other = await aTeam(api, "elsewhere");
    const theirs = await session.newPage();
    await signIn(theirs, `/runs/${runId}`, other.key);
    const text = async () =>
      (await theirs.getByRole("alert").first().textContent())!.replaceAll(/[0-9a-f-]{36}/g, "ID");
    await theirs.getByRole("alert").first().waitFor();
    const foreign = await text();
    await theirs.goto(`/runs/${runId.slice(0, -1)}${runId.endsWith("0") ? "1" : "0"}`);
    await theirs.getByRole("alert").first().waitFor();
    expect(await eventually(text)).toBe(foreign);
  });
});
