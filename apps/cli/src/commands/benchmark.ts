import { configurationName, percent, progressLine, table, type BenchmarkRun } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { textOption, UsageError, type Cli, type Command, type Values } from "../command.ts";
import { readJson } from "../files.ts";
import { FACTORY, factoryPath } from "../which-factory.ts";

type Suite = {
  uid: string;
  name: string;
  factory_agent_type: string;
  version: number;
  updated_at: string;
  configurations?: unknown[];
  tasks?: unknown[];
};
type SuiteTask = { uid: string; title: string };
type Trial = {
  uid: string;
  task_title: string;
  configuration_uid: string;
  rep_index: number;
  state: string;
  run_id: string | null;
  attempt_count: number;
  terminal_reason?: string;
  scores?: { scorer_name: string; status: string; outcome?: string | null }[];
};

/** The path of a benchmark run, or of something below it. */
export const benchmarkRunPath = (
  cli: Cli,
  values: Values,
  suite: string,
  ...more: readonly string[]
): Promise<string> => factoryPath(cli, values, "benchmarks", suite, "runs", ...more);

const suiteLine = ({ uid, name, version, tasks = [], configurations = [] }: Suite): string =>
  `suite ${uid} (${name}), version ${version}: ${tasks.length} tasks, ${configurations.length} configurations`;

/** The body of a new task: a JSON file, or a run's prompt and repositories with the given criteria. */
async function taskBody(cli: Cli, values: Values, file: string | undefined): Promise<unknown> {
  const [run, criteria] = [textOption(values, "run"), textOption(values, "criteria")];
  if (file !== undefined && run === undefined && criteria === undefined) return readJson(file);
  if (file !== undefined || run === undefined || criteria === undefined)
    throw new UsageError("Give a FILE, or --run RUN and --criteria TEXT.");
  const draft = await cli
    .api()
    .post<object>(await factoryPath(cli, values, "benchmarks", "compose-task"), { run_id: run });
  return { ...draft, success_criteria: criteria };
}

const ratesOf = ({ configuration_stats: stats }: BenchmarkRun): string =>
  (stats ?? []).map((tally) => `${configurationName(tally)} ${percent(tally.pass_rate)}`).join(", ");
const scoresOf = ({ scores = [] }: Trial): string =>
  scores.map((score) => `${score.scorer_name} ${score.outcome ?? score.status}`).join(", ");

/** Benchmark suites, their tasks, and their runs. */
export const benchmarkCommands: Command[] = [
  {
    words: "benchmark list",
    args: [],
    options: { ...FACTORY, limit: { type: "string" } },
    summary: "List a factory's benchmark suites, newest first.",
    run: async (cli, _args, values) => {
      const { suites } = await cli
        .api()
        .get<{ suites: Suite[] }>(await factoryPath(cli, values, "benchmarks"), { limit: textOption(values, "limit") });
      cli.show(suites, () =>
        table(
          ["SUITE", "NAME", "AGENT", "VERSION", "UPDATED"],
          suites.map((suite) => [
            suite.uid,
            suite.name,
            suite.factory_agent_type,
            String(suite.version),
            suite.updated_at,
          ]),
        ),
      );
    },
  },
  {
    words: "benchmark create",
    args: ["FILE"],
    options: FACTORY,
    summary:
      "Create a suite from a JSON file with the members of the API: name, agent_uid, factory_agent_type, tasks, configurations.",
    run: async (cli, [file], values) => {
      const suite = await cli.api().post<Suite>(await factoryPath(cli, values, "benchmarks"), await readJson(file!));
      cli.show(suite, () => suiteLine(suite));
    },
  },
  {
    words: "benchmark add-task",
    args: ["SUITE", "[FILE]"],
    options: { ...FACTORY, run: { type: "string" }, criteria: { type: "string" } },
    summary:
      "Add a task to a suite from a JSON file, or from a run (--run RUN --criteria TEXT). The identical task is added once.",
    run: async (cli, [suite, file], values) => {
      const task = await cli
        .api()
        .post<SuiteTask>(
          await factoryPath(cli, values, "benchmarks", suite!, "tasks"),
          await taskBody(cli, values, file),
        );
      cli.show(task, () => `task ${task.uid} (${task.title})`);
    },
  },
  {
    words: "benchmark runs",
    args: ["SUITE"],
    options: { ...FACTORY, state: { type: "string", choices: CHOICES.benchmarkRunStates }, limit: { type: "string" } },
    summary: "List the benchmark runs of a suite, newest first.",
    run: async (cli, [suite], values) => {
      const state = textOption(values, "state")?.split(",");
      const { data } = await cli.api().get<{ data: BenchmarkRun[] }>(await benchmarkRunPath(cli, values, suite!), {
        state,
        limit: textOption(values, "limit"),
      });
      cli.show(data, () =>
        table(
          ["RUN", "CREATED", "VERSION", "PROGRESS", "PASS RATES"],
          data.map((run) => [run.uid, run.created_at, String(run.suite_version), progressLine(run), ratesOf(run)]),
        ),
      );
    },
  },
  {
    words: "benchmark trials",
    args: ["SUITE", "RUN"],
    options: {
      ...FACTORY,
      state: { type: "string", choices: CHOICES.trialStates },
      limit: { type: "string" },
      export: { type: "string", choices: CHOICES.exportFormats },
    },
    summary: "List the trials of a benchmark run; --export prints all of them with scores and metrics.",
    run: async (cli, [suite, run], values) => {
      const format = textOption(values, "export");
      const path = await benchmarkRunPath(cli, values, suite!, run!, "trials");
      if (format === "ndjson")
        return cli.printJson((await cli.api().download(`${path}/export?format=ndjson`)).trimEnd());
      if (format === "csv") return cli.print((await cli.api().download(`${path}/export?format=csv`)).trimEnd());
      const query = {
        state: textOption(values, "state")?.split(","),
        limit: textOption(values, "limit"),
        include: "scores",
      };
      const { data } = await cli.api().get<{ data: Trial[] }>(path, query);
      const row = (trial: Trial): string[] => [
        trial.task_title,
        trial.configuration_uid,
        String(trial.rep_index),
        trial.terminal_reason ? `${trial.state} (${trial.terminal_reason})` : trial.state,
        String(trial.attempt_count),
        trial.run_id ?? "",
        scoresOf(trial),
      ];
      cli.show(data, () =>
        table(["TASK", "CONFIGURATION", "REP", "STATE", "ATTEMPTS", "RUN", "SCORES"], data.map(row)),
      );
    },
  },
  {
    words: "benchmark cancel",
    args: ["SUITE", "RUN"],
    options: FACTORY,
    summary: "Cancel a benchmark run with the runs of its trials.",
    run: async (cli, [suite, run], values) => {
      const cancelled = await cli.api().post<BenchmarkRun>(await benchmarkRunPath(cli, values, suite!, run!, "cancel"));
      cli.show(cancelled, () => `benchmark run ${cancelled.uid} is ${cancelled.state}.`);
    },
  },
];
