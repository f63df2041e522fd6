import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ApiClient } from "@millwright/api-client";
import { paint } from "@millwright/terminal";
import { loadConfig } from "../config.ts";
import { startStandalone } from "../standalone.ts";
import { LiveView } from "./live-view.ts";
import { prepareFactory, runTree, taskOfRun } from "./journey.ts";
import { branchesOf, createDemoRepositories } from "./repositories.ts";
import { summarise, type Outcome } from "./summary.ts";
import { verify } from "./verify.ts";

const PROMPT = "The tests of acme/price-list fail: an order of ten items gets no bulk discount. Please have it fixed.";

/** `--model <id>` has an AI do the job; its provider's key is in the environment. */
const { values: options } = parseArgs({ options: { keep: { type: "boolean", default: false }, model: { type: "string", default: "scripted" } } });
const isKept = options.keep;
const colours = paint(process.stdout.isTTY && !process.env["NO_COLOR"]);
const print = (text: string) => process.stdout.write(`${text}\n`);
const heading = (text: string) => print(`\n${colours.bold(colours.blue(text))}`);

const directory = await mkdtemp(join(tmpdir(), "millwright-demo-"));
heading("1  The platform starts");
const world = await createDemoRepositories(directory, options.model);
const platform = await startStandalone(
  loadConfig({ ...process.env, PORT: process.env["PORT"] ?? "0", MILLWRIGHT_DATA_DIR: join(directory, "data"), MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: directory }),
);
try {
  const api = new ApiClient({ url: platform.url, apiKey: platform.apiKey! });
  print(`   ${platform.url}, with PostgreSQL and one worker`);

  heading("2  A factory is defined from a git repository");
  const { factoryUid, plan } = await prepareFactory(api, world);
  for (const line of plan) print(`   ${colours.green("+")} ${line.replace(/^create /, "")}`);

  heading("3  Work is dispatched to it");
  print(`   ${colours.cyan("»")} ${PROMPT}\n`);
  const run = await api.post<{ run_id: string }>(`/factory/${factoryUid}/runs`, { prompt: PROMPT, title: "Fix the bulk discount", ticket_ref: "demo:PRICE-1" });
  await new LiveView(api, colours, print).follow(run.run_id);

  heading("4  The finished task");
  const task = await taskOfRun(api, factoryUid, run.run_id);
  const runs = await runTree(api, run.run_id);
  const outcome: Outcome = await verify({ api, task, runs, branches: await branchesOf(world.bareRepository), isScripted: options.model === "scripted" });
  print(summarise(outcome, colours));
  if (isKept) await stayUp();
} finally {
  await platform.stop();
  if (!isKept) await rm(directory, { recursive: true, force: true });
}
process.exit(0); // a keep-alive connection of the client must not hold the process

async function stayUp(): Promise<void> {
  heading("The platform stays up (Ctrl-C ends it)");
  print(`   export MILLWRIGHT_URL=${platform.url} MILLWRIGHT_API_KEY=${platform.apiKey}`);
  print(`   npx millwright run list`);
  await Promise.race([once(process, "SIGINT"), once(process, "SIGTERM")]);
}
