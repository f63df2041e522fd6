/**
 * Makes the screenshots of the documentation, `docs/images/*.png`, from the demo. Needs chromium (CHROMIUM_PATH).
 *
 *   npm run screenshots
 */
import { execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { chromium, type Page } from "playwright-core";

const ROOT = join(import.meta.dirname, "../..");
const IMAGES = join(ROOT, "docs/images");
const TIMEOUT_MS = 120_000;
const { CHROMIUM_PATH: executablePath = "/usr/bin/chromium", CI: _ci, ...env } = process.env;

execFileSync(process.execPath, ["--no-warnings", join(ROOT, "apps/console/build.mjs")], { stdio: "inherit" });
const demo = spawn(
  process.execPath,
  ["--conditions=@millwright/source", "--no-warnings", "apps/standalone/src/demo/main.ts", "--keep"],
  { cwd: ROOT, env, stdio: ["ignore", "pipe", "inherit"] },
);
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
try {
  const { url, key } = await platformOf();
  const context = await browser.newContext({
    baseURL: url,
    viewport: { width: 1280, height: 800 },
    deviceScaleFactor: 1.5,
  });
  context.setDefaultTimeout(TIMEOUT_MS);
  await makeAll(await context.newPage(), key);
} finally {
  await browser.close();
  demo.kill("SIGTERM");
}

/** Returns the address and the key that the demo prints when its work is done. */
async function platformOf(): Promise<{ url: string; key: string }> {
  for await (const line of createInterface({ input: demo.stdout })) {
    const [, url, key] = /MILLWRIGHT_URL=(\S+) MILLWRIGHT_API_KEY=(\S+)/.exec(line) ?? [];
    if (url && key) return { url, key };
  }
  throw new Error("The demo ended before its platform was ready.");
}

async function makeAll(page: Page, key: string): Promise<void> {
  const save = async (name: string): Promise<void> =>
    void (await page.screenshot({ path: join(IMAGES, `${name}.png`), animations: "disabled" }));
  await page.goto("/runs");
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("link", { name: "Fix the bulk discount" }).first().waitFor();
  await save("runs");
  await page.goto("/work");
  await page.getByRole("link", { name: "Fix the bulk discount" }).waitFor();
  await save("work");
  await page.getByRole("link", { name: "Fix the bulk discount" }).click();
  const details = page.getByRole("complementary", { name: "Details of the run" });
  await details.getByRole("link", { name: "implementer" }).click();
  await page.getByText("Opened pull request").waitFor();
  await save("run");
  await details.getByRole("link", { name: /open/ }).click();
  await page.getByRole("heading", { name: /#1$/ }).waitFor();
  await save("pull-request");
}
