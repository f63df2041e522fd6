import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ConsoleSession, expectAccessible, inBrowser, signIn, type ConsolePage } from "../support/browser.ts";
import type { Client } from "../support/client.ts";
import { RUN_TIMEOUT_MS, script, startRun, succeeded } from "../support/runs.ts";

const BIDI = "\u202Etxt.exe";
const MARKUP = [
  "<script>document.title='owned'</script>",
  "<img src=x onerror=document.title='owned'>",
  "<svg onload=document.title='owned'><a href='javascript:1'>x</a></svg>",
  "<iframe src='https://evil.example'></iframe><style>body{display:none}</style>",
].join(" ");
const LINKS = [
  "[js](javascript:document.title='owned')",
  "[data](data:text/html,x)",
  "![pixel](https://evil.example/pixel.png)",
  "[good](https://good.example/)",
].join(" ");
const ESCAPES = String.raw`\033]0;owned\007\033]8;;javascript:1\007link\033]8;;\007\033[2J\033[31mred\033[0m\033[999Cend`;

inBrowser("text that an agent wrote", () => {
  let session: ConsoleSession;
  let api: Client;
  let page: ConsolePage;
  beforeAll(async () => {
    session = await ConsoleSession.start();
    ({ api } = session);
    const id = await startRun(
      api,
      script(
        `say: ${JSON.stringify(`${MARKUP}\n\n${LINKS}\n\n${BIDI}`)}`,
        `write: {path: ${JSON.stringify(`${BIDI}<b>`)}, content: ${JSON.stringify(MARKUP)}}`,
        `shell: ${JSON.stringify(`printf '${ESCAPES}'`)}`,
        `plan: {title: ${JSON.stringify(MARKUP)}, markdown: ${JSON.stringify(`${MARKUP}\n\n${LINKS}`)}}`,
        `external_reference: {url: 'https://good.example/', reference_type: ticket, title: ${JSON.stringify(MARKUP)}}`,
      ),
      { title: `${MARKUP} ${BIDI}` },
    );
    await succeeded(api, id);
    page = await session.newPage();
    page.setDefaultTimeout(RUN_TIMEOUT_MS);
    await signIn(page, `/runs/${id}`);
    await page.getByText("good", { exact: true }).waitFor();
  });
  afterAll(async () => {
    await session?.remove();
  });

  test("is text: it runs nothing and creates no elements", async () => {
    expect(await page.title()).not.toBe("owned");
    expect(await page.getByText("<script>document.title='owned'</script>").count()).toBeGreaterThan(0);
    expect(await page.locator("main :is(script, iframe, style, img)").count()).toBe(0);
    expect(await page.locator("main svg[onload], main [onerror]").count()).toBe(0);
  });

  test("links to http and https only, and loads no image", async () => {
    const targets = await page
      .locator("a")
      .evaluateAll((links) => links.map((link) => link.getAttribute("href") ?? ""));
    expect(targets.filter((target) => /^(?:javascript|data):/i.test(target))).toEqual([]);
    expect(targets).toContain("https://good.example/");
    expect(await page.getByText("[image: pixel]").count()).toBeGreaterThan(0);
  });

  test("shows colours of terminals and none of their other control", async () => {
    const output = page.getByRole("region", { name: /^Output of/ });
    expect(await output.textContent()).toBe("linkredend");
    expect(await output.locator(".red").textContent()).toBe("red");
  });

  test("shows characters that change the direction of text", async () => {
    expect(await page.getByText("U+202E").count()).toBeGreaterThan(2);
    expect(await page.locator("body").textContent()).not.toContain("\u202E");
    expect(await page.title()).not.toContain("\u202E");
  });

  test("is the same in a plan, in the list and in the command palette, without a violation of the policy", async () => {
    await page.getByRole("complementary", { name: "Details of the run" }).getByRole("button").first().click();
    await page.getByRole("dialog").getByText("good").waitFor();
    await expectAccessible(page);
    await page.keyboard.press("Escape");
    await page.goto("/runs");
    await page.getByRole("link", { name: /<script>/ }).waitFor();
    await page.keyboard.press("Control+k");
    await page.getByPlaceholder("Search pages, factories, runs, actions…").fill("script");
    await page.getByRole("option", { name: /<script>/ }).waitFor();
    expect(page.problems).toEqual([]);
  });
});
