import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect } from "@jest/globals";
import { chromium, type Browser, type Page } from "playwright-core";
import { OWNER_KEY, type Deployment } from "@millwright/test-platform";
import { connect, type Client } from "./client.ts";
import { startPlatform } from "./deployment.ts";

const CHROMIUM = process.env["CHROMIUM_PATH"] ?? "/usr/bin/chromium";
const ROOT = join(import.meta.dirname, "../../../..");
const ARGUMENTS = [
  ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"],
  ...["--disable-background-networking", "--disable-component-update", "--disable-sync"],
];

const isDeclared = existsSync(CHROMIUM) || process.env["CI"] === "true";

/** Declares tests that need chromium. Without it, they are skipped with a name that states this, or fail if `CI=true`. */
export function inBrowser(name: string, tests: () => void): void {
  (isDeclared ? describe : describe.skip)(isDeclared ? name : `${name} (needs chromium)`, tests);
}

/** Builds the console unless it is current. The platform serves it from the same directory. */
function buildConsole(): void {
  execFileSync(process.execPath, ["--no-warnings", join(ROOT, "apps/console/build.mjs")], { stdio: "pipe" });
}

/** A platform that serves the console, a client of its API, and a browser. */
export class ConsoleSession {
  readonly platform: Deployment;
  readonly api: Client;
  readonly #browser: Browser;

  private constructor(platform: Deployment, api: Client, browser: Browser) {
    this.platform = platform;
    this.api = api;
    this.#browser = browser;
  }

  /** Builds the console, and starts a platform and a browser without a network of its own. */
  static async start(options?: Parameters<typeof startPlatform>[0]): Promise<ConsoleSession> {
    buildConsole();
    const platform = await startPlatform(options);
    const api = await connect(platform);
    return new ConsoleSession(platform, api, await chromium.launch({ executablePath: CHROMIUM, args: ARGUMENTS }));
  }

  /** Opens a page of a new browser profile. */
  newPage(): Promise<ConsolePage> {
    return newPage(this.#browser, this.platform.url);
  }

  async remove(): Promise<void> {
    await this.#browser.close();
    await this.platform.remove();
  }
}

export type ConsolePage = Page & {
  /** Violations of the content security policy, uncaught errors, and requests to other hosts. */
  readonly problems: string[];
};

/** Opens a page of a new browser profile that records problems. */
async function newPage(browser: Browser, url: string): Promise<ConsolePage> {
  const context = await browser.newContext({ baseURL: url, viewport: { width: 1360, height: 860 } });
  const problems: string[] = [];
  const page = Object.assign(await context.newPage(), { problems });
  page.on("console", (message) => {
    if (/content security policy/i.test(message.text())) problems.push(message.text());
  });
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("request", (request) => {
    if (/^https?:/.test(request.url()) && !request.url().startsWith(url)) problems.push(`request to ${request.url()}`);
  });
  return page;
}

/** Opens a path and signs in with a key. */
export async function signIn(page: Page, path = "/", key = OWNER_KEY): Promise<void> {
  await page.goto(path);
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
}

/** Expects that the page does not scroll sideways in a window of a width. The width is restored afterwards. */
export async function expectFits(page: Page, width: number): Promise<void> {
  const before = page.viewportSize()!;
  await page.setViewportSize({ ...before, width });
  const [content, frame] = await page
    .locator("#content")
    .evaluate(({ scrollWidth, clientWidth }: any): number[] => [scrollWidth, clientWidth]);
  await page.setViewportSize(before);
  expect([width, content]).toEqual([width, frame]);
}

const AXE = createRequire(import.meta.url).resolve("axe-core/axe.min.js");

/** Expects that axe finds no violation on the page as it is, in light and in dark. */
export async function expectAccessible(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    // evaluated as a program of the debugger, which the content security policy does not concern
    await page.evaluate(readFileSync(AXE, "utf8"));
    const violations = (await page.evaluate(
      `axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) =>
        violations.flatMap(({ id, nodes }) => nodes.map(({ html, failureSummary }) => id + ": " + html.slice(0, 200) + " " + failureSummary)))`,
    )) as string[];
    expect([colorScheme, violations]).toEqual([colorScheme, []]);
  }
}
