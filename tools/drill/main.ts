// npm run drill: executes seeded schedules of faults on a platform of real processes, and reports violated guarantees.
//
//   npm run drill -- [--seed N] [--count 1000] [--at-once 6]
//   npm run drill -- --tree [--runs 1000] [--depth 10]      cancels a run tree while it grows, reports the duration
//
// With a seed and without a count, only this schedule is executed. Exit code 1 if any guarantee was violated.
import { parseArgs } from "node:util";
import { drillTree } from "@millwright/test-platform";
import { drillSchedules } from "./schedules.ts";
import { printRows } from "./table.ts";

const text = { type: "string" } as const;
const { values } = parseArgs({
  options: {
    seed: text,
    count: text,
    "at-once": { ...text, default: "6" },
    tree: { type: "boolean", default: false },
    runs: { ...text, default: "1000" },
    depth: { ...text, default: "10" },
  },
});

if (values.tree) {
  const report = await drillTree(Number(values.runs), Number(values.depth));
  const seconds = (ms: number): string => `${(ms / 1_000).toFixed(2)} s`;
  printRows([
    ["runs in the tree", report.runs],
    ["levels below its root", report.depth],
    ["executions that were running when it was cancelled", report.working],
    ["children created while it was being cancelled", report.spawnedDuringCancel],
    ["until the response to the cancel", seconds(report.responseMs)],
    ["until every run was terminal", seconds(report.terminalMs)],
    ["until no lease and no process was left", seconds(report.goneMs)],
  ]);
} else {
  const count = Number(values.count ?? (values.seed === undefined ? 1_000 : 1));
  process.exitCode = (await drillSchedules({ seed: Number(values.seed ?? 1), count, width: Number(values["at-once"]) }))
    ? 0
    : 1;
}
