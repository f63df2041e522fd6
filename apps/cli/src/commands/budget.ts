import { table } from "@millwright/terminal";
import { CHOICES } from "../choices.ts";
import {
  numberOf,
  textOption,
  textOptions,
  UsageError,
  type Cli,
  type Command,
  type Values,
  nonEmpty,
} from "../command.ts";
import { teamOf } from "./access.ts";

type Budget = {
  uid: string;
  scope: string;
  scope_uid: string;
  period: string;
  limit_usd: number;
  thresholds_percent: number[];
  spent_usd: number;
  reserved_usd: number;
  remaining_usd: number;
  resets_at: string | null;
};

const pathOf = async (cli: Cli, values: Values) => `/team/${await teamOf(cli, textOption(values, "team"))}/budgets`;
const line = ({ uid, scope, period, limit_usd: limit, spent_usd: spent, resets_at: reset }: Budget): string =>
  `budget ${uid} (${scope}, ${period}): $${spent} of $${limit} spent, ${reset === null ? "never resets" : `resets at ${reset}`}`;

/** Spending caps of a team. */
export const budgetCommands: Command[] = [
  {
    words: "budget list",
    args: [],
    summary: "List a team's budgets with the spend of their current periods.",
    run: async (cli, _args, values) => {
      const { budgets } = await cli.api().get<{ budgets: Budget[] }>(await pathOf(cli, values));
      const rows = budgets.map((budget) => [
        ...[budget.uid, budget.scope, budget.scope_uid, budget.period, `$${budget.limit_usd}`, `$${budget.spent_usd}`],
        ...[`$${budget.reserved_usd}`, `$${budget.remaining_usd}`, budget.resets_at ?? "never"],
      ]);
      cli.show(budgets, () =>
        table(["BUDGET", "SCOPE", "OF", "PERIOD", "LIMIT", "SPENT", "RESERVED", "REMAINING", "RESETS"], rows),
      );
    },
  },
  {
    words: "budget set",
    args: ["LIMIT_USD"],
    options: {
      period: { type: "string", choices: CHOICES.budgetPeriods },
      scope: { type: "string", choices: CHOICES.budgetScopes },
      of: { type: "string" },
      threshold: { type: "string", multiple: true },
    },
    summary:
      "Create a budget (--period, by default month; --scope, by default team; --of UID; --threshold PERCENT, repeatable), or change it.",
    run: async (cli, [limit], values) => {
      const path = await pathOf(cli, values);
      const team = path.split("/")[2];
      const [scope, period] = [textOption(values, "scope") ?? "team", textOption(values, "period") ?? "month"];
      const of = textOption(values, "of") ?? (scope === "team" ? team : undefined);
      if (of === undefined) throw new UsageError(`Give --of UID: the ${scope} that the budget covers.`);
      const percents = textOptions(values, "threshold").map((text) => numberOf(text, "--threshold"));
      const settings = {
        limit_usd: numberOf(limit, "LIMIT_USD"),
        thresholds_percent: nonEmpty(percents),
      };
      const { budgets } = await cli.api().get<{ budgets: Budget[] }>(path);
      const known = budgets.find(
        (budget) => budget.scope === scope && budget.scope_uid === of.toLowerCase() && budget.period === period,
      );
      const budget = known
        ? await cli.api().request<Budget>("PATCH", `${path}/${known.uid}`, { body: settings })
        : await cli.api().post<Budget>(path, { scope, scope_uid: of, period, ...settings });
      cli.show(budget, () => line(budget));
    },
  },
  {
    words: "budget delete",
    args: ["BUDGET"],
    summary: "Delete a budget; its runs are no longer limited by it.",
    run: async (cli, [uid], values) => {
      await cli.api().request("DELETE", `${await pathOf(cli, values)}/${uid}`);
      cli.show({ uid, deleted: true }, () => `budget ${uid} is deleted.`);
    },
  },
];
