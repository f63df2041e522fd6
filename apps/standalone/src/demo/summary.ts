import { colourDiff, type Paint } from "@millwright/terminal";
import type { DemoRun, Task } from "./journey.ts";

export type Outcome = { task: Task; runs: DemoRun[]; diff: string; links: Record<string, string> };

const LINKS_OPEN = "Open in a browser";
const LINKS_CLOSED = "Links (they open while the platform runs: npm run demo -- --keep)";

/**
 * Returns a summary of the finished task: run tree, diff, cost and links. `isRunning`: the platform keeps running, so
 * the links can be opened.
 */
export function summarise(outcome: Outcome, paint: Paint, isRunning: boolean): string {
  const { task, runs, diff } = outcome;
  const cost = runs.reduce((sum, run) => sum + (run.request_usage?.inference_cost_usd ?? 0), 0);
  const isPriced = runs.every((run) => run.request_usage?.inference_cost_usd !== undefined);
  const tokens = runs.reduce((sum, run) => sum + (run.request_usage?.total_tokens ?? 0), 0);
  return [
    "",
    paint.bold(`Task  ${task.title}`),
    `stage ${paint.green(task.stage)}`,
    "",
    paint.bold("Runs"),
    ...runs.map((run, index) => runLine(run, index === 0 ? 0 : 1, paint)),
    "",
    paint.bold("Change"),
    colourDiff(diff.trimEnd(), paint),
    "",
    `${paint.bold("Cost")}  ${isPriced ? `$${cost.toFixed(6)} for model calls` : "not known: the model has no listed price"}  ${paint.dim(tokens === 0 ? "(scripted steps cost nothing)" : `(${tokens} tokens)`)}`,
    "",
    paint.bold(isRunning ? LINKS_OPEN : LINKS_CLOSED),
    ...Object.entries(outcome.links).map(([name, url]) => `  ${name.padEnd(14)} ${url}`),
  ].join("\n");
}

function runLine(run: DemoRun, depth: number, paint: Paint): string {
  const colour = run.state === "SUCCEEDED" ? paint.green : paint.red;
  const artifacts = (run.artifacts ?? []).map((one) => one.artifact_type.toLowerCase().replace("_", " "));
  const name = run.executor?.display_name ?? "agent";
  return `  ${"   ".repeat(depth)}${depth > 0 ? "└─ " : ""}${name}  ${colour(run.state)}  ${run.run_time ?? ""}  ${paint.dim(artifacts.join(", "))}`.trimEnd();
}
