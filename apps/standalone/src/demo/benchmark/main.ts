import { parseArgs } from "node:util";
import { resultsTable } from "@millwright/terminal";
import { prepareFactory } from "../journey.ts";
import { runDemo } from "../run-demo.ts";
import { executeBenchmark } from "./execute.ts";
import { linksOf } from "./links.ts";
import { DIFFERENCE } from "./suite.ts";
import { verifyBenchmark } from "./verify.ts";

const OPTIONS = {
  /** Exits after the results, even on a terminal. */
  exit: { type: "boolean", default: false },
  /** Runs until a signal arrives and preserves the data directory. */
  keep: { type: "boolean", default: false },
} as const;
const { values: options } = parseArgs({ options: OPTIONS });
const settings = { MILLWRIGHT_SANDBOX: "optional" }; // the scripts execute only commands from files of this repository
const demo = {
  ...options,
  model: "scripted",
  definition: "measured-factory",
  settings,
  env: process.env,
  hint: "npx millwright benchmark list",
};

await runDemo(demo, async (stage) => {
  const { api, world, colours, print, heading } = stage;
  heading("2  A factory is defined from a git repository");
  const { factoryUid, plan } = await prepareFactory(api, world);
  for (const line of plan) print(`   ${colours.green("+")} ${line.replace(/^create /, "")}`);

  heading("3  A benchmark runs its tasks under two configurations");
  for (const line of DIFFERENCE) print(`   ${line}`);
  const benchmark = await executeBenchmark(stage, factoryUid);

  heading("4  The results");
  const verified = await verifyBenchmark(api, benchmark);
  const { coverage } = verified.results;
  print(`${resultsTable(verified.results)}\n`);
  print(`${colours.bold("Coverage")}  ${coverage.received} of ${coverage.expected} expected outcomes`);
  print(`${colours.bold("Manifest")}  sha256 ${verified.run.manifest_hash}\n`);
  print(
    colours.bold(
      stage.staysUp
        ? "Open in a browser"
        : "Links (they open while the platform runs: npm run demo:benchmark -- --keep)",
    ),
  );
  for (const [name, url] of await linksOf(api, verified.trials)) print(`  ${name.padEnd(30)} ${url}`);
  return ["the results", `/benchmarks/${factoryUid}/${benchmark.suiteUid}/runs/${benchmark.run.uid}`];
});
process.exit(0); // a keep-alive connection of the client would keep the process running
