import { invalidArgument } from "@millwright/errors";
import { canonicalJson, type JsonObject } from "@millwright/json";
import { differenceJson, scoringJson, seedOf } from "./benchmark-difference.ts";
import type { BenchmarkPlan, PlanConfiguration } from "./benchmark-plan.ts";
import { correctnessTally } from "./benchmark-progress.ts";
import type { BenchmarkRun } from "./benchmark-run.ts";
import type { BenchmarkStats } from "./benchmark-stats.ts";

export type ComparedRun = {
  readonly run: BenchmarkRun;
  readonly plan: BenchmarkPlan;
  /** Statistics of all trials. */
  readonly stats: BenchmarkStats;
};

/**
 * Compares a benchmark run with another run (the reference) of the same suite, over the tasks that have the same title
 * in both. Configurations are matched by display name, else by role if the role is unique. Trials are paired by task
 * and repetition.
 *
 * Errors: not_comparable (invalid_argument): the same run twice, no shared task, or no matching configurations.
 */
export function compareRuns(compared: ComparedRun, reference: ComparedRun): JsonObject {
  if (compared.run.uid === reference.run.uid) throw notComparable("A benchmark run cannot be compared with itself.");
  const shared = sharedTasks(compared, reference);
  if (shared.length === 0) throw notComparable("The two benchmark runs have no task with the same title.");
  const matched = matchConfigurations(compared.plan.configurations, reference.plan.configurations);
  if (matched.length === 0)
    throw notComparable(
      "The two benchmark runs have no configuration with the same display name or the same unique role.",
    );
  const [own, other] = [
    only(compared.stats, new Set(shared.map((task) => task.own))),
    only(reference.stats, new Set(shared.map((task) => task.other))),
  ];
  const titles = (plan: BenchmarkPlan): string[] =>
    plan.tasks.map(({ title }) => title).filter((title) => !shared.some((task) => task.title === title));
  return {
    run: runJson(compared.run),
    other_run: runJson(reference.run),
    same_manifest: compared.run.manifestHash === reference.run.manifestHash,
    shared_tasks: shared.map(({ title }) => title),
    changed_tasks: shared.filter((task) => task.isChanged).map(({ title }) => title),
    tasks_only_in_run: titles(compared.plan),
    tasks_only_in_other_run: titles(reference.plan),
    configurations: matched.map((pair) => comparedJson(pair, { compared, reference, own, other, shared })),
    unmatched_configurations: compared.plan.configurations
      .filter((configuration) => !matched.some((pair) => pair.own === configuration))
      .map(({ uid }) => uid),
  };
}

type SharedTask = { readonly title: string; readonly own: string; readonly other: string; readonly isChanged: boolean };
type MatchedPair = { readonly own: PlanConfiguration; readonly other: PlanConfiguration };

function sharedTasks(compared: ComparedRun, reference: ComparedRun): SharedTask[] {
  const others = new Map(
    reference.plan.tasks.map((task, n) => [
      task.title,
      { uid: task.uid, content: reference.run.manifest.content.tasks[n]! },
    ]),
  );
  return compared.plan.tasks.flatMap(({ uid, title }, n) => {
    const other = others.get(title);
    if (!other) return [];
    return [
      {
        title,
        own: uid,
        other: other.uid,
        isChanged: canonicalJson(other.content) !== canonicalJson(compared.run.manifest.content.tasks[n]!),
      },
    ];
  });
}

function matchConfigurations(own: readonly PlanConfiguration[], other: readonly PlanConfiguration[]): MatchedPair[] {
  const unique = (
    all: readonly PlanConfiguration[],
    isMatch: (one: PlanConfiguration) => boolean,
  ): PlanConfiguration | undefined => {
    const found = all.filter(isMatch);
    return found.length === 1 ? found[0] : undefined;
  };
  const byName = own.flatMap((configuration) => {
    const name = configuration.displayName;
    const found = name === "" ? undefined : unique(other, ({ displayName }) => displayName === name);
    return found && unique(own, ({ displayName }) => displayName === name)
      ? [{ own: configuration, other: found }]
      : [];
  });
  const restOwn = own.filter((configuration) => !byName.some((pair) => pair.own === configuration));
  const restOther = other.filter((configuration) => !byName.some((pair) => pair.other === configuration));
  const byRole = restOwn.flatMap((configuration) => {
    const found = unique(restOther, ({ role }) => role === configuration.role);
    return found && unique(restOwn, ({ role }) => role === configuration.role)
      ? [{ own: configuration, other: found }]
      : [];
  });
  return own.flatMap((configuration) => [...byName, ...byRole].filter((pair) => pair.own === configuration));
}

type Context = {
  readonly compared: ComparedRun;
  readonly reference: ComparedRun;
  readonly own: BenchmarkStats;
  readonly other: BenchmarkStats;
  readonly shared: readonly SharedTask[];
};

function comparedJson(pair: MatchedPair, { compared, reference, own, other, shared }: Context): JsonObject {
  const outcomesOf = (stats: BenchmarkStats, configurationUid: string): Map<string, string> =>
    new Map(
      stats.trials
        .filter((group) => group.configurationUid === configurationUid)
        .map(({ taskUid, outcomes }) => [taskUid, outcomes]),
    );
  const [candidates, references] = [outcomesOf(own, pair.own.uid), outcomesOf(other, pair.other.uid)];
  const paired = shared.map((task) => ({
    reference: references.get(task.other) ?? "",
    candidate: candidates.get(task.own) ?? "",
  }));
  const difference = differenceJson(paired, seedOf(compared.run.manifestHash));
  return {
    role: pair.own.role,
    display_name: pair.own.displayName,
    configuration_uid: pair.own.uid,
    other_configuration_uid: pair.other.uid,
    run: scoringJson(correctnessTally(compared.plan, own, { configurationUid: pair.own.uid })),
    other_run: scoringJson(correctnessTally(reference.plan, other, { configurationUid: pair.other.uid })),
    difference,
    distinguishable: difference["distinguishable"]!,
    verdict: difference["verdict"]!,
  };
}

const only = ({ trials, scores, scorerUids }: BenchmarkStats, taskUids: ReadonlySet<string>): BenchmarkStats => ({
  trials: trials.filter(({ taskUid }) => taskUids.has(taskUid)),
  scores: scores.filter(({ taskUid }) => taskUids.has(taskUid)),
  scorerUids,
});

const runJson = ({ uid, state, suiteVersion, manifestHash, createdAt }: BenchmarkRun): JsonObject => ({
  uid,
  state,
  suite_version: suiteVersion,
  manifest_hash: manifestHash,
  created_at: createdAt.toISOString(),
});

const notComparable = (message: string) => invalidArgument("not_comparable", message);
