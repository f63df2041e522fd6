export { bar, sparkline } from "./charts.ts";
export { nodeArguments } from "./node-arguments.ts";
export { paint, type Paint } from "./paint.ts";
export { table } from "./table.ts";
export { describeRunEvent, type ProgressLine, type RunEventJson } from "./run-progress.ts";
export { printable, printableJson } from "./printable.ts";
export { colourDiff } from "./diff.ts";
export { percent, points, range } from "./rates.ts";
export {
  comparisonTable,
  configurationName,
  progressLine,
  resultsTable,
  unmetConditions,
  type BenchmarkRun,
  type Comparison,
  type Results,
} from "./benchmark-report.ts";
