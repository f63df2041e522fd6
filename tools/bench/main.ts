// npm run bench [-- --quick] [--only <scenario>]… [--out <dir>] [--profile <dir>]: see docs/performance.md. Ends by itself.
import { mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { startBaseline } from "./baseline/start.ts";
import type { Bench } from "./bench.ts";
import { chartOf } from "./chart.ts";
import { measureMemory } from "./memory.ts";
import { startPlatform } from "./platform.ts";
import { tableOf } from "./report.ts";
import type { MemoryUse, Results, Row } from "./results.ts";
import { measureAppending } from "./scenarios/appending.ts";
import { measureCreation } from "./scenarios/creation.ts";
import { measureFeed } from "./scenarios/feed.ts";
import { measureReading } from "./scenarios/reading.ts";
import { measureWork } from "./scenarios/work.ts";
import { judge } from "./targets.ts";

/** In this order: creation leaves a long queue, which would be in the way of those that wait for a run of their own. */
const SCENARIOS: Readonly<Record<string, (bench: Bench) => Promise<Row[]>>> = {
  work: measureWork, appending: measureAppending, feed: measureFeed, reading: measureReading, creation: measureCreation,
};

const { values: options } = parseArgs({
  options: { quick: { type: "boolean", default: false }, only: { type: "string", multiple: true }, out: { type: "string", default: ".bench" }, profile: { type: "string" } },
});
const known = [...Object.keys(SCENARIOS), "memory"];
const wanted = options.only ?? (options.quick ? known.filter((name) => name !== "memory") : known);
const unknown = wanted.filter((name) => !known.includes(name));
if (unknown.length > 0) throw new Error(`No scenario ${unknown.join(", ")}. There are: ${known.join(", ")}.`);

const beganMs = performance.now();
const dir = await mkdtemp(join(tmpdir(), "millwright-bench-"));
try {
  const rows = await measureRates();
  const memory: MemoryUse[] = wanted.includes("memory") ? await measureMemory(dir) : [];
  const results: Results = {
    isQuick: options.quick, seconds: (performance.now() - beganMs) / 1000, cores: availableParallelism(), node: process.versions.node,
    rows, memory, targets: judge(rows, memory),
  };
  process.stdout.write(`${tableOf(results)}\n\nWritten to ${save(results)}\n`);
} finally {
  await rm(dir, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
}

async function measureRates(): Promise<Row[]> {
  const scenarios = Object.entries(SCENARIOS).filter(([name]) => wanted.includes(name));
  if (scenarios.length === 0) return [];
  const flags = options.profile ? ["--cpu-prof", `--cpu-prof-dir=${resolve(options.profile)}`] : [];
  const platform = await startPlatform(dir, { workers: 0, flags });
  try {
    const baseline = await startBaseline(dir, platform);
    try {
      const rows: Row[] = [];
      for (const [name, measure] of scenarios) {
        process.stderr.write(`measuring ${name} …\n`);
        rows.push(...(await measure({ platform, baseline, isQuick: options.quick })));
      }
      return rows;
    } finally {
      await baseline.stop();
    }
  } finally {
    await platform.stop();
  }
}

/** Answers where. */
function save(results: Results): string {
  const out = resolve(options.out);
  mkdirSync(out, { recursive: true });
  writeFileSync(join(out, "results.json"), `${JSON.stringify(results, null, 2)}\n`);
  writeFileSync(join(out, "chart.svg"), chartOf(results.rows));
  return out;
}
