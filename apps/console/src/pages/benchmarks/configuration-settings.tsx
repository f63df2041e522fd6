import type { ReactNode } from "react";
import type { components } from "../../gen/api.ts";
import { Id } from "../../ui/copy.tsx";
import type { Column } from "../../ui/data-table.tsx";
import { SafeText } from "../../ui/safe-text.tsx";

type Configuration = components["schemas"]["BenchmarkConfiguration"];
type Setting = "model" | "harness" | "runner_id";
/** Names of runners by uid. */
type RunnerNames = ReadonlyMap<string, string>;

const SETTINGS: readonly (readonly [Setting, string])[] = [
  ["model", "Model"],
  ["harness", "Harness"],
  ["runner_id", "Runner"],
];

const differs = (configurations: readonly Configuration[], setting: Setting): boolean =>
  new Set(configurations.map((each) => each[setting] || undefined)).size > 1;

function valueText(setting: Setting, value: string | undefined, runners: RunnerNames): ReactNode {
  if (!value) return "the agent's";
  const text = setting === "runner_id" ? runners.get(value) : value;
  return text ? <SafeText>{text}</SafeText> : <Id value={value} />;
}

const columnOf = (
  [setting, title]: (typeof SETTINGS)[number],
  runners: RunnerNames,
  isDifferent: boolean,
): Column<Configuration> => ({
  title,
  cell: ({ [setting]: value }) => {
    const text = valueText(setting, value, runners);
    return isDifferent ? <strong>{text}</strong> : text;
  },
});

/** Columns with the settings of configurations. Those that differ are emphasized. */
export const settingColumns = (
  configurations: readonly Configuration[],
  runners: RunnerNames,
): Column<Configuration>[] =>
  SETTINGS.map((setting) => columnOf(setting, runners, differs(configurations, setting[0])));

/** Columns with the settings that differ between configurations. */
export const differingSettings = (
  configurations: readonly Configuration[],
  runners: RunnerNames,
): Column<Configuration>[] =>
  SETTINGS.filter(([setting]) => differs(configurations, setting)).map((setting) => columnOf(setting, runners, false));

/** States which settings differ between configurations. Empty for a single configuration. */
export function DifferingSettings({ configurations }: { configurations: readonly Configuration[] }): ReactNode {
  if (configurations.length < 2) return null;
  const names = SETTINGS.flatMap(([setting, title]) => (differs(configurations, setting) ? [title.toLowerCase()] : []));
  return <p>{names.length === 0 ? "The configurations have the same settings." : `Differs in: ${names.join(", ")}`}</p>;
}
