import type { components } from "../../gen/api.ts";
import type { Column } from "../../ui/data-table.tsx";
import { SafeText } from "../../ui/safe-text.tsx";

type Configuration = components["schemas"]["BenchmarkConfiguration"];
type Setting = "model" | "harness" | "runner_id";

const SETTINGS: readonly (readonly [Setting, string])[] = [
  ["model", "Model"],
  ["harness", "Harness"],
  ["runner_id", "Runner"],
];

const differs = (configurations: readonly Configuration[], setting: Setting): boolean =>
  new Set(configurations.map((each) => each[setting] || undefined)).size > 1;

const columnOf = ([setting, title]: (typeof SETTINGS)[number], isDifferent: boolean): Column<Configuration> => ({
  title,
  cell: ({ [setting]: value }) => {
    const text = <SafeText>{value || "the agent's"}</SafeText>;
    return isDifferent ? <strong>{text}</strong> : text;
  },
});

/** Columns with the settings of configurations. Those that differ are emphasized. */
export const settingColumns = (configurations: readonly Configuration[]): Column<Configuration>[] =>
  SETTINGS.map((setting) => columnOf(setting, differs(configurations, setting[0])));

/** Columns with the settings that differ between configurations. */
export const differingSettings = (configurations: readonly Configuration[]): Column<Configuration>[] =>
  SETTINGS.filter(([setting]) => differs(configurations, setting)).map((setting) => columnOf(setting, false));
