import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ApiClient } from "@millwright/api-client";
import { paint, type Paint } from "@millwright/terminal";
import { buildConsole } from "../build-console.ts";
import { loadConfig } from "../config.ts";
import { startStandalone, type Standalone } from "../standalone.ts";
import { createDemoRepositories, type DemoRepositories } from "./repositories.ts";
import { demoEnd, untilKeyPressed, untilSignal, type DemoEnd } from "./stay-up.ts";

/** The platform and the helpers that a demo uses. */
export type DemoStage = {
  readonly api: ApiClient;
  /** Origin of the platform, and the API key of its owner. */
  readonly url: string;
  readonly apiKey: string;
  /** Returns the URL of a service's database. */
  readonly databaseUrl: (service: string) => string;
  readonly world: DemoRepositories;
  readonly colours: Paint;
  /** Whether the platform keeps running after the demo, so that the links can be opened. */
  readonly staysUp: boolean;
  readonly print: (text: string) => void;
  readonly heading: (text: string) => void;
};

export type DemoOptions = {
  readonly exit: boolean;
  readonly keep: boolean;
  readonly model: string;
  /** Directory of `examples` with the definition of the factory. */
  readonly definition: string;
  /** Settings of the platform that the environment may override. */
  readonly settings: Readonly<Record<string, string>>;
  readonly env: NodeJS.ProcessEnv;
  /** Command to enter in a second terminal while the platform runs. */
  readonly hint: string;
};

/** What the demo is about: the name of a page of the console, and its path. */
export type DemoPage = readonly [name: string, path: string];

const LABEL_WIDTH = 11;

const print = (text: string): void => void process.stdout.write(`${text}\n`);
const headingIn =
  (colours: Paint) =>
  (text: string): void =>
    print(`\n${colours.bold(colours.blue(text))}`);

/**
 * Starts the platform in a temporary directory, executes the demo's work, and stops the platform at the end that the
 * options select. The work returns the page that shows its result. Errors: those of the work.
 */
export async function runDemo(
  { exit, keep, model, definition, settings, env, hint }: DemoOptions,
  work: (stage: DemoStage) => Promise<DemoPage>,
): Promise<void> {
  const end = demoEnd({ exit, keep, isTerminal: process.stdin.isTTY && process.stdout.isTTY, env });
  const colours = paint(process.stdout.isTTY && !env["NO_COLOR"]);
  const heading = headingIn(colours);
  const directory = await mkdtemp(join(tmpdir(), "millwright-demo-"));
  heading("1  The platform starts");
  const repositories = join(directory, "repositories");
  const world = await createDemoRepositories(repositories, model, definition);
  const paths = { MILLWRIGHT_DATA_DIR: join(directory, "data"), MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: repositories };
  const platform = await startStandalone(loadConfig({ PORT: "0", ...settings, ...env, ...paths }));
  try {
    print(`   ${platform.url}, with PostgreSQL and one worker`);
    const { url, apiKey = "", databaseUrl } = platform;
    const page = await work({
      api: new ApiClient({ url, apiKey }),
      url,
      apiKey,
      databaseUrl,
      world,
      colours,
      staysUp: end !== "exit",
      print,
      heading,
    });
    if (end !== "exit") {
      heading("The platform is running");
      await stayUp(platform, end, directory, page, hint);
    }
  } finally {
    await platform.stop();
    if (end !== "signal") await rm(directory, { recursive: true, force: true });
  }
}

async function stayUp(
  platform: Standalone,
  end: DemoEnd,
  directory: string,
  [name, path]: DemoPage,
  hint: string,
): Promise<void> {
  if (platform.signInUrl !== undefined)
    print(`   ${"sign in".padEnd(LABEL_WIDTH)} ${platform.signInUrl}   (works once, within 30 minutes)`);
  print(`   ${name.padEnd(LABEL_WIDTH)} ${platform.url}${path}\n`);
  print(`   export MILLWRIGHT_URL=${platform.url} MILLWRIGHT_API_KEY=${platform.apiKey}`);
  print(`   ${hint}\n`);
  buildConsole();
  print(end === "key" ? "Press any key to stop it." : `Ctrl-C stops it. Its data stays in ${directory}.`);
  await (end === "key" ? untilKeyPressed(process.stdin) : untilSignal());
}
