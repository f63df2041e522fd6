import { percent, table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import { EXIT, textOption, textOptions, type Command } from "../command.ts";
import { readJson } from "../files.ts";
import { FACTORY, factoryPath } from "../which-factory.ts";

type Scorer = {
  uid: string;
  name: string;
  model_id: string;
  scope_mode: string;
  agents: { uid: string; name?: string }[];
  sampling_rate: number;
  version: number;
  result_count?: number;
  pass_rate_summary?: { pass_rate: number | null };
};
type Result = {
  run_id: string;
  attempted_at: string;
  status: string;
  classification?: string;
  score?: number;
  outcome: string | null;
  failure_code?: string;
  reasons?: { reason?: string }[];
};
type Dispatched = { scorer_uid: string; run_id: string; status: string; scoring_run_id?: string; error?: string };
type Counts = { pass_count: number; fail_count: number; pass_rate: number | null };
type Metrics = {
  period_list: string[];
  pass_rate: Counts & { series: Counts[] };
  cost?: { dollars: number; series: number[] };
};

const agentsOf = ({ scope_mode: mode, agents }: Scorer): string =>
  mode === "all_agents" ? "all" : agents.map(({ uid, name }) => name ?? uid).join(", ");
const line = (scorer: Scorer): string =>
  `scorer ${scorer.uid} (${scorer.name}), version ${scorer.version}, judged by ${scorer.model_id}, agents: ${agentsOf(scorer)}`;

function metricsTable({ period_list: periods, pass_rate: rates, cost }: Metrics): string {
  const row = (
    name: string,
    { pass_count: passed, fail_count: failed, pass_rate: rate }: Counts,
    dollars: number | undefined,
  ): string[] => [
    name,
    String(passed),
    String(failed),
    percent(rate),
    ...(dollars === undefined ? [] : [`$${dollars.toFixed(4)}`]),
  ];
  const rows = periods.map((period, at) => row(period, rates.series[at]!, cost?.series[at]));
  return table(
    ["PERIOD", "PASSED", "FAILED", "PASS RATE", ...(cost ? ["COST"] : [])],
    [...rows, row("all", rates, cost?.dollars)],
  );
}

/** Scorers: judges of a factory's finished runs. */
export const scorerCommands: Command[] = [
  {
    words: "scorer list",
    args: [],
    options: { ...FACTORY, managed: { type: "boolean" } },
    summary:
      "List a factory's scorers with the pass rate of their most recent scores; --managed adds those of benchmarks.",
    run: async (cli, _args, values) => {
      const { scorers } = await cli.api().get<{ scorers: Scorer[] }>(await factoryPath(cli, values, "scorers"), {
        include_managed: values["managed"] === true ? true : undefined,
      });
      const row = (scorer: Scorer): string[] => [
        scorer.uid,
        scorer.name,
        scorer.model_id,
        agentsOf(scorer),
        `${scorer.sampling_rate} %`,
        percent(scorer.pass_rate_summary?.pass_rate ?? null),
        String(scorer.result_count ?? 0),
      ];
      cli.show(scorers, () =>
        table(["SCORER", "NAME", "MODEL", "AGENTS", "SAMPLED", "PASS RATE", "RESULTS"], scorers.map(row)),
      );
    },
  },
  {
    words: "scorer create",
    args: ["FILE"],
    options: FACTORY,
    summary:
      "Create a scorer from a JSON file with the members of the API: name, scoring_prompt, model_id, scope_mode, allowed_classifications, threshold.",
    run: async (cli, [file], values) => {
      const scorer = await cli.api().post<Scorer>(await factoryPath(cli, values, "scorers"), await readJson(file!));
      cli.show(scorer, () => line(scorer));
    },
  },
  {
    words: "scorer show-results",
    args: ["SCORER"],
    options: {
      ...FACTORY,
      run: { type: "string", multiple: true },
      reasons: { type: "boolean" },
      limit: { type: "string" },
    },
    summary:
      "Show a scorer's results, newest first, or those of runs (--run RUN, repeatable); --reasons adds the judge's reasons.",
    run: async (cli, [uid], values) => {
      const runs = textOptions(values, "run");
      const query = {
        limit: textOption(values, "limit"),
        include_reasons: values["reasons"] === true ? true : undefined,
        ...(runs.length > 0 && { run_id: runs }),
      };
      const { results } = await cli
        .api()
        .get<{ results: Result[] }>(await factoryPath(cli, values, "scorers", uid!, "results"), query);
      const row = (result: Result): string[] => [
        result.attempted_at,
        result.run_id,
        result.status,
        result.classification ?? result.failure_code ?? "",
        String(result.score ?? ""),
        result.outcome ?? "",
        ...(values["reasons"] === true ? [result.reasons?.[0]?.reason ?? ""] : []),
      ];
      cli.show(results, () =>
        table(
          [
            "ATTEMPTED",
            "RUN",
            "STATUS",
            "LABEL",
            "SCORE",
            "OUTCOME",
            ...(values["reasons"] === true ? ["REASON"] : []),
          ],
          results.map(row),
        ),
      );
    },
  },
  {
    words: "scorer dispatch",
    args: ["SCORER", "RUN..."],
    options: FACTORY,
    summary: "Score runs with a scorer now; exit code 1 if scoring one of them could not be started.",
    run: async (cli, [uid, ...runs], values) => {
      const { results } = await cli
        .api()
        .post<{ results: Dispatched[] }>(await factoryPath(cli, values, "scorers", uid!, "dispatch"), {
          run_ids: runs,
        });
      cli.show(results, () =>
        table(
          ["RUN", "STATUS", "SCORING RUN OR ERROR"],
          results.map((result) => [result.run_id, result.status, result.scoring_run_id ?? result.error ?? ""]),
        ),
      );
      return results.some(({ status }) => status === "failed") ? EXIT.failed : EXIT.done;
    },
  },
  {
    words: "scorer metrics",
    args: ["SCORER"],
    options: {
      ...FACTORY,
      from: { type: "string" },
      to: { type: "string" },
      by: { type: "string", choices: CHOICES.periods },
      cost: { type: "boolean" },
    },
    summary:
      "Show a scorer's pass rate per day, week or month (--by), between --from and --to; --cost adds the cost of its judge runs.",
    run: async (cli, [uid], values) => {
      const query = {
        start_date: textOption(values, "from"),
        end_date: textOption(values, "to"),
        group_by_period: textOption(values, "by"),
        include_cost: values["cost"] === true ? true : undefined,
      };
      const metrics = await cli.api().get<Metrics>(await factoryPath(cli, values, "scorers", uid!, "metrics"), query);
      cli.show(metrics, () => metricsTable(metrics));
    },
  },
  {
    words: "scorer delete",
    args: ["SCORER"],
    options: FACTORY,
    summary: "Delete a scorer permanently, with its attempts, scores and reasons.",
    run: async (cli, [uid], values) => {
      await cli.api().request("DELETE", await factoryPath(cli, values, "scorers", uid!));
      cli.show({ uid, deleted: true }, () => `scorer ${uid} is deleted.`);
    },
  },
];
