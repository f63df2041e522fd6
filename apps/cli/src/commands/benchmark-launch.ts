import { setTimeout as delay } from "node:timers/promises";
import { ApiError } from "@millwright/api-client";
import {
  comparisonTable,
  progressLine,
  resultsTable,
  unmetConditions,
  type BenchmarkRun,
  type Comparison,
  type Results,
} from "@millwright/terminal";
import {
  checkedId,
  EXIT,
  textOption,
  textOptions,
  UsageError,
  type Cli,
  type Command,
  type Values,
  nonEmpty,
} from "../command.ts";
import { readJson } from "../files.ts";
import { FACTORY } from "../which-factory.ts";
import { benchmarkRunPath } from "./benchmark.ts";

const FINISHED = ["completed", "failed", "cancelled"];
const POLL_SECONDS = 5;
/** Reads in a row that may fail while the platform restarts. */
const FAILED_READS_MAX = 10;

/** Conditions of the exit code, for continuous integration. */
const CONDITIONS = { "fail-below": { type: "string" }, "compare-to": { type: "string" } } as const;
const CONDITIONS_TEXT =
  "--fail-below RATE: exit code 1 if the pass rate of a configuration is below RATE percent; --compare-to RUN: if a configuration is distinguishably worse than in that run.";

/** Returns a number of the command line within bounds. Errors: UsageError. */
function numberOption(values: Values, name: string, min: number, max: number): number | undefined {
  const text = textOption(values, name);
  if (text === undefined) return undefined;
  const value = Number(text);
  if (text.trim() === "" || !(value >= min && value <= max))
    throw new UsageError(`--${name} must be a number from ${min} to ${max} (got ${JSON.stringify(text)}).`);
  return value;
}

type Conditions = { belowPercent: number | undefined; otherRun: string | undefined };

function conditionsOf(values: Values): Conditions {
  const otherRun = textOption(values, "compare-to");
  return {
    belowPercent: numberOption(values, "fail-below", 0, 100),
    otherRun: otherRun === undefined ? undefined : checkedId(otherRun, "benchmark run"),
  };
}

/**
 * Prints progress whenever it changes, until the benchmark run has finished; with `--json` nothing. Passing failures of
 * reads are retried.
 */
async function waitForEnd(cli: Cli, path: string, everySeconds: number): Promise<void> {
  let failures = 0;
  for (let shown = ""; ; await delay(everySeconds * 1000)) {
    const run = await cli
      .api()
      .get<BenchmarkRun>(path)
      .catch((error: unknown) => {
        if ((error instanceof ApiError && error.status < 500) || ++failures > FAILED_READS_MAX) throw error;
      });
    if (!run) continue;
    failures = 0;
    const line = progressLine(run);
    if (!cli.isJson && line !== shown) cli.print(line);
    shown = line;
    if (FINISHED.includes(run.state)) return;
  }
}

/** Prints the results of a finished benchmark run and returns the exit code that the conditions ask for. */
async function report(cli: Cli, path: string, { belowPercent, otherRun }: Conditions): Promise<number> {
  const results = await cli.api().get<Results>(`${path}/results`);
  const comparison =
    otherRun === undefined
      ? undefined
      : await cli.api().get<Comparison>(`${path}/compare`, { other_run_uid: otherRun });
  cli.show(comparison ? { results, comparison } : results, () =>
    [resultsTable(results), ...(comparison ? [comparisonTable(comparison)] : [])].join("\n\n"),
  );
  const unmet = unmetConditions({ results, comparison, belowPercent });
  for (const text of unmet) cli.printError(text);
  return unmet.length > 0 ? EXIT.failed : EXIT.done;
}

/** Returns the body of a launch; a replay has the repetitions of the benchmark run that it scores again. */
async function launchBody(cli: Cli, path: string, values: Values): Promise<object> {
  const [configurations, replayed, parallelism] = [
    textOption(values, "configurations"),
    textOption(values, "replay"),
    numberOption(values, "parallelism", 1, 100),
  ];
  const [tasks, scorers] = [textOptions(values, "task"), textOptions(values, "scorer")];
  const earlier =
    replayed === undefined
      ? undefined
      : await cli.api().get<{ repetition_count: number }>(`${path}/${checkedId(replayed, "benchmark run")}`);
  return {
    repetition_count: numberOption(values, "repetitions", 1, 10_000) ?? earlier?.repetition_count ?? 1,
    configurations: configurations === undefined ? undefined : await readJson(configurations),
    tasks: nonEmpty(tasks),
    scorer_selection: nonEmpty(scorers),
    historical_replay_run_uid: replayed,
    parallelism,
  };
}

/** Launching benchmark runs and judging by their results. */
export const benchmarkLaunchCommands: Command[] = [
  {
    words: "benchmark launch",
    args: ["SUITE"],
    options: {
      ...FACTORY,
      repetitions: { type: "string" },
      configurations: { type: "string" },
      task: { type: "string", multiple: true },
      scorer: { type: "string", multiple: true },
      parallelism: { type: "string" },
      replay: { type: "string" },
      "idempotency-key": { type: "string" },
      watch: { type: "boolean" },
      interval: { type: "string" },
      ...CONDITIONS,
    },
    summary: [
      "Launch a benchmark run: --repetitions N (default 1), --configurations FILE (JSON list; default: those of the suite), --task and --scorer (repeatable), --replay RUN scores old trials again.",
      `--watch waits for the end, reading every --interval SECONDS (default ${POLL_SECONDS}), and prints the results; exit code 1 if the run does not complete. With a condition it always waits. ${CONDITIONS_TEXT}`,
    ].join(" "),
    run: async (cli, [suite], values) => {
      const conditions = conditionsOf(values);
      const everySeconds = numberOption(values, "interval", 0.01, 3600) ?? POLL_SECONDS;
      const key = textOption(values, "idempotency-key");
      const path = await benchmarkRunPath(cli, values, suite!);
      const launched = await cli
        .api()
        .post<{ uid: string; state: string }>(
          path,
          await launchBody(cli, path, values),
          key === undefined ? {} : { idempotencyKey: key },
        );
      const isWaiting =
        values["watch"] === true || conditions.belowPercent !== undefined || conditions.otherRun !== undefined;
      if (!isWaiting) return cli.show(launched, () => `benchmark run ${launched.uid} is ${launched.state}.`);
      if (!cli.isJson) cli.print(`benchmark run ${launched.uid}`);
      await waitForEnd(cli, `${path}/${launched.uid}`, everySeconds);
      return report(cli, `${path}/${launched.uid}`, conditions);
    },
  },
  {
    words: "benchmark results",
    args: ["SUITE", "RUN"],
    options: { ...FACTORY, ...CONDITIONS },
    summary: `Show the results of a benchmark run: pass rates with 95 % intervals, outcomes received of expected, cost. ${CONDITIONS_TEXT}`,
    run: async (cli, [suite, run], values) => {
      const conditions = conditionsOf(values);
      const path = await benchmarkRunPath(cli, values, suite!, run!);
      const code = await report(cli, path, conditions);
      return conditions.belowPercent === undefined && conditions.otherRun === undefined ? EXIT.done : code;
    },
  },
  {
    words: "benchmark compare",
    args: ["SUITE", "RUN", "OTHER_RUN"],
    options: FACTORY,
    summary:
      "Compare a benchmark run with another one of its suite; exit code 1 if a configuration is distinguishably worse.",
    run: async (cli, [suite, run, otherRun], values) => {
      const comparison = await cli
        .api()
        .get<Comparison>(await benchmarkRunPath(cli, values, suite!, run!, "compare"), { other_run_uid: otherRun });
      cli.show(comparison, () => comparisonTable(comparison));
      const worse = unmetConditions({ comparison });
      for (const text of worse) cli.printError(text);
      return worse.length > 0 ? EXIT.failed : EXIT.done;
    },
  },
];
