import type { BenchmarkPart } from "@millwright/definition";
import { isDomainError } from "@millwright/errors";
import { NO_AGENT, suiteSettingsOf, suiteTasksOf, taskContentOf } from "../domain/defined-suite.ts";
import type { Diagnostic } from "../domain/definition-diagnostic.ts";
import { checkTasks } from "../domain/suite-rules.ts";

/** An existing suite of the factory; `slug` is null if it was created through the API. */
export type KnownSuite = { readonly slug: string | null; readonly name: string; readonly runCount: number };

/**
 * Returns errors of the suites of a definition: invalid settings and tasks, unknown models and names that are taken.
 */
export function suiteFaults(
  suites: readonly BenchmarkPart[],
  known: readonly KnownSuite[],
  models: ReadonlySet<string>,
  factoryUid: string,
): Diagnostic[] {
  const taken = new Set(known.flatMap(({ slug, name }) => (slug === null ? [name.toLowerCase()] : [])));
  return suites.flatMap((part) => [
    ...settingsFaults(part, factoryUid),
    ...part.tasks.flatMap((task) =>
      faults(`benchmarks/${part.slug}/tasks/${task.slug}.yaml`, () => taskContentOf(task)),
    ),
    ...modelFaults(part, models),
    ...nameFaults(part, taken),
  ]);
}

/** Returns a warning for each suite that applying deletes. */
export function suiteRemovals(suites: readonly BenchmarkPart[], known: readonly KnownSuite[]): Diagnostic[] {
  const slugs = new Set(suites.map(({ slug }) => slug));
  return known.flatMap(({ slug, runCount }): Diagnostic[] => {
    if (slug === null || slugs.has(slug)) return [];
    const message = `Without this file, applying deletes the suite ${slug} with its tasks; its benchmark runs (${runCount}) stay readable.`;
    return [{ path: fileOf({ slug }), keys: [], code: "FF_MISSING_FILE", message, severity: "warning" }];
  });
}

const settingsFaults = (part: BenchmarkPart, factoryUid: string): Diagnostic[] =>
  faults(fileOf(part), () => {
    suiteSettingsOf(part, factoryUid, NO_AGENT);
    if (part.tasks.every((task) => faults("", () => taskContentOf(task)).length === 0)) checkTasks(suiteTasksOf(part));
  });

/**
 * Returns errors for unknown models. Models of third-party harnesses are not checked, because the catalog does not have
 * them.
 */
const modelFaults = ({ slug, configurations = [] }: BenchmarkPart, models: ReadonlySet<string>): Diagnostic[] =>
  configurations.flatMap(({ model, harness }, index): Diagnostic[] => {
    const name = harness === undefined ? model : harness.type === "oz" ? harness.model : undefined;
    if (name === undefined || models.has(name)) return [];
    const keys = ["configurations", String(index), ...(harness === undefined ? ["model"] : ["harness", "model"])];
    return [
      {
        path: fileOf({ slug }),
        keys,
        code: "FF_INVALID_REFERENCE",
        message: `model: there is no model ${JSON.stringify(name)}.`,
        severity: "error",
      },
    ];
  });

/** Returns an error if the name is taken. The parser rejects equal names of files. */
function nameFaults(part: BenchmarkPart, taken: ReadonlySet<string>): Diagnostic[] {
  if (!taken.has(part.name.trim().toLowerCase())) return [];
  return [
    {
      path: fileOf(part),
      keys: ["name"],
      code: "FF_DUPLICATE_NAME",
      message: `The name ${part.name} is already that of a suite of the API.`,
      severity: "error",
    },
  ];
}

const FILE_KEYS: Readonly<Record<string, string>> = {
  success_criteria: "successCriteria",
  source_run_id: "sourceRunId",
  starting_repo_refs: "startingRepoRefs",
};

function faults(path: string, check: () => unknown): Diagnostic[] {
  try {
    check();
    return [];
  } catch (error) {
    if (!isDomainError(error) || error.kind !== "invalid_argument") throw error;
    const { field = "" } = error.metadata;
    return [
      {
        path,
        keys: field === "" ? [] : [FILE_KEYS[field] ?? field],
        code: "FF_INVALID_VALUE",
        message: error.message,
        severity: "error",
      },
    ];
  }
}

const fileOf = ({ slug }: { slug: string }): string => `benchmarks/${slug}/suite.yaml`;
