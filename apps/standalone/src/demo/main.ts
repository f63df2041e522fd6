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
import { demoEnd, untilKeyPressed, untilSignal } from "./stay-up.ts";
import { summarise, type Outcome } from "./summary.ts";
import { verify } from "./verify.ts";

const PROMPT = "The tests of acme/price-list fail: an order of ten items gets no bulk discount. Please have it fixed.";

const OPTIONS = {
  /** Ends with the job, on a terminal too. */
  exit: { type: "boolean", default: false },
  /** Stays up until a signal arrives and does not remove the data directory. */
  keep: { type: "boolean", default: false },
  /** A model that does the job; the key of its provider is in the environment. */
  model: { type: "string", default: "scripted" },
} as const;
const { values: options } = parseArgs({ options: OPTIONS });
const isScripted = options.model === "scripted";
const end = demoEnd({ ...options, isTerminal: process.stdin.isTTY && process.stdout.isTTY, env: process.env });
const colours = paint(process.stdout.isTTY && !process.env["NO_COLOR"]);
const print = (text: string) => process.stdout.write(`${text}\n`);
const heading = (text: string) => print(`\n${colours.bold(colours.blue(text))}`);

const directory = await mkdtemp(join(tmpdir(), "millwright-demo-"));
heading("1  The platform starts");
const repositories = join(directory, "repositories");
const world = await createDemoRepositories(repositories, options.model);
const settings = {
  PORT: "0",
  MILLWRIGHT_SANDBOX: isScripted ? "optional" : "auto", // the commands of the scripts are files of this repository
  ...process.env,
  MILLWRIGHT_DATA_DIR: join(directory, "data"),
  MILLWRIGHT_LOCAL_REPOSITORY_ROOTS: repositories,
};
const platform = await startStandalone(loadConfig(settings));
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
  const outcome: Outcome = await verify({ api, task, runs, branches: await branchesOf(world.bareRepository), isScripted });
  print(summarise(outcome, colours, end !== "exit"));
  if (end !== "exit") await stayUp();
} finally {
  await platform.stop();
  if (end !== "signal") await rm(directory, { recursive: true, force: true });
}
process.exit(0); // a keep-alive connection of the client must not hold the process

async function stayUp(): Promise<void> {
  heading("The platform is running");
  print(`   export MILLWRIGHT_URL=${platform.url} MILLWRIGHT_API_KEY=${platform.apiKey}`);
  print("   npx millwright run list\n");
  print(end === "key" ? "Press any key to stop it." : `Ctrl-C stops it. Its data stays in ${directory}.`);
  await (end === "key" ? untilKeyPressed(process.stdin) : untilSignal());
}
