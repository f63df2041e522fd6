import { parseArgs } from "node:util";
import { LiveView } from "./live-view.ts";
import { prepareFactory, runTree, taskOfRun } from "./journey.ts";
import { branchesOf } from "./repositories.ts";
import { runDemo } from "./run-demo.ts";
import { summarise, type Outcome } from "./summary.ts";
import { verify } from "./verify.ts";

const PROMPT = "The tests of acme/price-list fail: an order of ten items gets no bulk discount. Please have it fixed.";

const OPTIONS = {
  /** Exits when the work is done, even on a terminal. */
  exit: { type: "boolean", default: false },
  /** Runs until a signal arrives and preserves the data directory. */
  keep: { type: "boolean", default: false },
  /** Id of the model that does the work; the key of its provider must be in the environment. */
  model: { type: "string", default: "scripted" },
} as const;
const { values: options } = parseArgs({ options: OPTIONS });
const isScripted = options.model === "scripted";
// the scripts execute only commands from files of this repository
const settings = { MILLWRIGHT_SANDBOX: isScripted ? "optional" : "auto" };

await runDemo(
  { ...options, definition: "first-factory", settings, env: process.env, hint: "npx millwright run list" },
  async ({ api, world, colours, staysUp, print, heading }) => {
    heading("2  A factory is defined from a git repository");
    const { factoryUid, plan } = await prepareFactory(api, world);
    for (const line of plan) print(`   ${colours.green("+")} ${line.replace(/^create /, "")}`);

    heading("3  Work is dispatched to it");
    print(`   ${colours.cyan("»")} ${PROMPT}\n`);
    const run = await api.post<{ run_id: string }>(`/factory/${factoryUid}/runs`, {
      prompt: PROMPT,
      title: "Fix the bulk discount",
      ticket_ref: "demo:PRICE-1",
    });
    await new LiveView(api, colours, print).follow(run.run_id);

    heading("4  The finished task");
    const task = await taskOfRun(api, factoryUid, run.run_id);
    const runs = await runTree(api, run.run_id);
    const outcome: Outcome = await verify({
      api,
      task,
      runs,
      branches: await branchesOf(world.bareRepository),
      isScripted,
    });
    print(summarise(outcome, colours, staysUp));
    return ["the board", `/work?factory=${factoryUid}`];
  },
);
process.exit(0); // a keep-alive connection of the client would keep the process running
