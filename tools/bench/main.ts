// npm run bench [-- --quick] [--only <scenario>]… [--on <setup>]… [--minutes <n>] [--runs <n>] [--out <dir>]
// [--data <dir>] [--profile <dir>] [--against <revision> [--turns <n>]]: see docs/performance.md. Exits within the time
// limit: with 0, with 1 if a scenario was left out or failed, or with 2 if the arguments are invalid.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { killAll, processesWith } from "@millwright/test-platform";
import { commitOf, compareWith } from "./against.ts";
import { startBaseline } from "./baseline/start.ts";
import type { Bench } from "./bench.ts";
import { chartOf } from "./chart.ts";
import { CostMeter } from "./cost.ts";
import { Deadline, OutOfTime } from "./deadline.ts";
import { measureMemory } from "./memory.ts";
import { startPlatform } from "./platform.ts";
import { startProcesses } from "./processes.ts";
import { tableOf } from "./report.ts";
import { SETUPS, type Measured, type MemoryUse, type Results, type Row, type Setup } from "./results.ts";
import { measureAppending } from "./scenarios/appending.ts";
import { measureClaims } from "./scenarios/claims.ts";
import { measureCreation } from "./scenarios/creation.ts";
import { measureFeed } from "./scenarios/feed.ts";
import { measureLeases } from "./scenarios/leases.ts";
import { measureListing } from "./scenarios/listing.ts";
import { measureMetrics } from "./scenarios/metrics.ts";
import { measureReading } from "./scenarios/reading.ts";
import { measureSandbox } from "./scenarios/sandbox.ts";
import { measureScaleOfFeed } from "./scenarios/scale-feed.ts";
import { measureScaleOfStreams } from "./scenarios/scale-streams.ts";
import { measureScaleOfWorkers } from "./scenarios/scale-workers.ts";
import { measureSchedules } from "./scenarios/schedules.ts";
import { measureScoring } from "./scenarios/scoring.ts";
import { measureStart } from "./scenarios/start.ts";
import { measureWebhooks } from "./scenarios/webhooks.ts";
import { measureWork } from "./scenarios/work.ts";
import { evaluateTargets } from "./targets.ts";

/**
 * The order matters: creation leaves a long queue, which would delay scenarios that wait for a run of their own; leases
 * are taken from that queue.
 */
const SCENARIOS: Readonly<Record<string, (bench: Bench) => Promise<Measured[]>>> = {
  work: measureWork,
  appending: measureAppending,
  feed: measureFeed,
  reading: measureReading,
  creation: measureCreation,
  leases: measureLeases,
  schedules: measureSchedules,
  webhooks: measureWebhooks,
  claims: measureClaims,
  listing: measureListing,
  scoring: measureScoring,
  metrics: measureMetrics,
  "scale-streams": measureScaleOfStreams,
  "scale-workers": measureScaleOfWorkers,
  "scale-feed": measureScaleOfFeed,
};
/** The scenarios that `--only scale` selects. */
const SCALE = Object.keys(SCENARIOS).filter((name) => name.startsWith("scale-"));
/**
 * Scenarios that run only if selected with `--only`: they first write a million rows, which takes minutes, or need a
 * queue without other runs.
 */
const ON_DEMAND = ["claims", "listing", "scoring", "metrics", ...SCALE];
const WITH_WORKER = ["memory", "sandbox"];
/** Starts the standalone platform itself. */
const START_SCENARIO = "start";
/** Scenarios that `--quick` leaves out unless they are selected. */
const SLOW = ["memory", START_SCENARIO];
const START = { standalone: startPlatform, processes: startProcesses } as const;
const MINUTES = { whole: 15, quick: 4 } as const;
/** Default number of turns of `--against`. */
const TURNS = 3;
/** Maximum time for stopping after the deadline, in milliseconds. */
const STOP_MS = 60_000;

const options = readOptions();
const scenarioNames = [...Object.keys(SCENARIOS), ...WITH_WORKER, START_SCENARIO];
const wanted = selectNames(
  "scenario",
  scenarioNames,
  options.only?.flatMap((name) => (name === "scale" ? SCALE : [name])) ??
    scenarioNames.filter((name) => !ON_DEMAND.includes(name) && !(options.quick && SLOW.includes(name))),
);
const setups = selectNames("setup", SETUPS, options.on ?? SETUPS);
const limitMs = Number(options.minutes ?? (options.quick ? MINUTES.quick : MINUTES.whole)) * 60_000;
if (!(limitMs > 0)) refuse("--minutes must be a positive number.");
const runs = options.runs === undefined ? undefined : Number(options.runs);
if (runs !== undefined && !(Number.isSafeInteger(runs) && runs > 0))
  refuse(`--runs must be a positive integer (got ${options.runs}).`);
if (options.against !== undefined) await compareRevisions(options.against);
const out = directoryAt("--out", options.out);
const data = options.data === undefined ? undefined : directoryAt("--data", options.data);

const startedMs = performance.now();
const deadline = new Deadline(limitMs);
const dir = mkdtempSync(join(tmpdir(), "millwright-bench-"));
/**
 * Data of the platforms. With `--data` it remains, so that a scenario that writes millions of rows writes them once.
 */
const dataDir = data ?? dir;
/** Returns the directory of a setup. Only processes of the benchmark have its name in their command lines. */
const homeOf = (on: Setup): string => join(dataDir, `millwright-bench-${on}`);
const rows: Row[] = [];
const memory: MemoryUse[] = [];
const unmeasured: string[] = [];
// If a measurement or a stop hangs or fails, all processes and temporary files of the benchmark are removed when this
// process exits.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(1));
process.once("exit", () => {
  killAll([dir, ...SETUPS.map(homeOf)].flatMap((path) => processesWith(path).map(({ pid }) => pid)));
  rmSync(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
});
setTimeout(() => process.exit(1), limitMs + STOP_MS).unref();
for (const on of setups) await measureRates(on);
for (const on of setups) await measureWithWorker(on);
if (wanted.includes(START_SCENARIO) && setups.includes("standalone"))
  await inTime(
    `${START_SCENARIO} on standalone`,
    async () =>
      void rows.push(...(await measureStart(join(dir, "start"))).map((row) => ({ ...row, on: "standalone" as const }))),
  );
const results: Results = {
  isQuick: options.quick,
  unmeasured,
  seconds: (performance.now() - startedMs) / 1000,
  cores: availableParallelism(),
  node: process.versions.node,
  rows,
  memory,
  targets: evaluateTargets(rows, memory),
};
writeFileSync(join(out, "results.json"), `${JSON.stringify(results, null, 2)}\n`);
writeFileSync(join(out, "chart.svg"), chartOf(rows));
process.stdout.write(`${tableOf(results)}\n\nWritten to ${out}\n`);
process.exit(unmeasured.length > 0 ? 1 : 0); // an abandoned scenario may still be waiting

async function measureRates(on: Setup): Promise<void> {
  const scenarios = Object.entries(SCENARIOS).filter(([name]) => wanted.includes(name));
  if (scenarios.length === 0) return;
  const flags = options.profile ? ["--cpu-prof", `--cpu-prof-dir=${resolve(options.profile)}`] : [];
  const home = homeOf(on);
  mkdirSync(home, { recursive: true });
  const platform = await START[on](home, { workers: 0, flags });
  try {
    const baseline = await startBaseline(home, platform);
    const meter = await CostMeter.open(platform.databaseUrl("postgres"));
    try {
      for (const [name, measure] of scenarios) {
        await inTime(
          `${name} on ${on}`,
          async () =>
            void rows.push(
              ...(await measure({ platform, baseline, meter, isQuick: options.quick, runs })).map((row) => ({
                ...row,
                on,
              })),
            ),
        );
      }
    } finally {
      await meter.close();
      await baseline.stop();
    }
  } finally {
    await platform.stop();
  }
}

/** Runs the scenarios that need a platform with a worker. */
async function measureWithWorker(on: Setup): Promise<void> {
  if (!wanted.some((name) => WITH_WORKER.includes(name))) return;
  const home = join(dir, `worker-${on}`);
  mkdirSync(home);
  const platform = await START[on](home, { workers: 1 });
  try {
    if (wanted.includes("memory"))
      await inTime(`memory on ${on}`, async () => void memory.push(...(await measureMemory(platform))));
    if (wanted.includes("sandbox"))
      await inTime(
        `sandbox on ${on}`,
        async () => void rows.push(...(await measureSandbox(platform, options.quick)).map((row) => ({ ...row, on }))),
      );
  } finally {
    await platform.stop();
  }
}

/**
 * Runs a scenario within the deadline. A scenario that fails or exceeds the deadline is listed as not measured, and its
 * error is printed at once; earlier results are preserved.
 */
async function inTime(what: string, measure: () => Promise<void>): Promise<void> {
  process.stderr.write(`measuring ${what} …\n`);
  try {
    await deadline.within(measure);
  } catch (error) {
    if (!(error instanceof OutOfTime))
      process.stderr.write(`${what} failed: ${error instanceof Error ? error.stack : String(error)}\n`);
    unmeasured.push(what);
  }
}

/** Compares the working tree with a revision, prints the differences and exits. */
async function compareRevisions(revision: string): Promise<never> {
  const turns = Number(options.turns ?? TURNS);
  if (!(Number.isInteger(turns) && turns > 0)) refuse(`--turns must be a positive integer (got ${options.turns}).`);
  const commit = commitOf(revision);
  if (commit === undefined) refuse(`--against ${revision} is not a revision of this repository.`);
  const passed = [
    ...(options.quick ? ["--quick"] : []),
    ...(options.only ?? []).flatMap((name) => ["--only", name]),
    ...(options.on ?? []).flatMap((on) => ["--on", on]),
    ...(options.minutes === undefined ? [] : ["--minutes", options.minutes]),
    ...(options.runs === undefined ? [] : ["--runs", options.runs]),
  ];
  process.stdout.write(`${await compareWith(commit, turns, passed)}\n`);
  process.exit(0);
}

function selectNames<T extends string>(kind: string, all: readonly T[], names: readonly string[]): T[] {
  const unknown = names.filter((name) => !all.some((known) => known === name));
  if (unknown.length > 0) refuse(`Unknown ${kind} ${unknown.join(", ")}. Known: ${all.join(", ")}.`);
  return all.filter((known) => names.includes(known));
}

function readOptions() {
  try {
    return parseArgs({
      options: {
        ...{
          quick: { type: "boolean", default: false },
          only: { type: "string", multiple: true },
          on: { type: "string", multiple: true },
        },
        ...{ minutes: { type: "string" }, runs: { type: "string" }, out: { type: "string", default: ".bench" } },
        ...{ data: { type: "string" }, profile: { type: "string" } },
        ...{ against: { type: "string" }, turns: { type: "string" } },
      },
    }).values;
  } catch (error) {
    return refuse((error as Error).message);
  }
}

/**
 * Creates the directory of an option before the measurements, so that results are not lost because they cannot be
 * written.
 */
function directoryAt(option: string, path: string): string {
  try {
    mkdirSync(path, { recursive: true });
    return resolve(path);
  } catch (error) {
    return refuse(
      `${option} ${path} is not a directory and cannot be created (${(error as NodeJS.ErrnoException).code}).`,
    );
  }
}

/** Prints a message and exits with 2, the code for invalid arguments. */
function refuse(why: string): never {
  process.stderr.write(`${why}\n`);
  process.exit(2);
}
