import { invalidArgument, type DomainError } from "@millwright/errors";
import {
  PARALLELISM,
  TRIALS_MAX,
  type BenchmarkRun,
  type BenchmarkRunState,
  type BenchmarkRunUid,
} from "./benchmark-run.ts";
import type { Scorer } from "./scorer.ts";
import type { GivenConfiguration } from "./configuration-rules.ts";

/** The parameters of a launch. Absent lists default to those of the suite. */
export type LaunchInput = {
  readonly repetitionCount: number;
  readonly configurations?: readonly GivenConfiguration[] | undefined;
  /** Uids or legacy ids; empty selects all applicable scorers. */
  readonly scorerSelection: readonly string[];
  readonly taskUids?: readonly string[] | undefined;
  readonly historicalReplayRunUid?: string | undefined;
  /** Maximum number of concurrent trials; 0 selects the default. */
  readonly parallelism: number;
};

/** What a launch returns. */
export type LaunchedBenchmark = { readonly uid: BenchmarkRunUid; readonly state: BenchmarkRunState };

/** Snake case, because the trials are written as a record set. */
export type PlannedTrial = {
  readonly uid: string;
  readonly position: number;
  readonly configuration_uid: string;
  readonly task_uid: string;
  readonly rep_index: number;
};

export const launchInvalid = (field: string, message: string): DomainError =>
  invalidArgument("launch_invalid", message, { field });

/** Checks the numbers of a launch. Returns the maximum number of concurrent trials. Errors: launch_invalid. */
export function checkNumbers({ repetitionCount, parallelism }: LaunchInput): number {
  if (!Number.isInteger(repetitionCount) || repetitionCount < 1 || repetitionCount > TRIALS_MAX) {
    throw launchInvalid(
      "repetition_count",
      `repetition_count must be between 1 and ${TRIALS_MAX} (got ${repetitionCount}).`,
    );
  }
  if (parallelism < 0 || parallelism > PARALLELISM.max) {
    throw launchInvalid(
      "parallelism",
      `parallelism must be between 1 and ${PARALLELISM.max} (got ${parallelism}); leave it out for ${PARALLELISM.default}.`,
    );
  }
  return parallelism || PARALLELISM.default;
}

/** Returns the selected tasks in the order of the suite, or all tasks without a selection. Errors: launch_invalid. */
export function selectTasks<T extends { readonly uid: string }>(
  tasks: readonly T[],
  taskUids: readonly string[] | undefined,
): readonly T[] {
  if (tasks.length === 0) throw launchInvalid("tasks", "The suite has no tasks; add one before a launch.");
  if (taskUids === undefined) return tasks;
  if (taskUids.length === 0)
    throw launchInvalid("tasks", "tasks must not be empty; leave it out for all tasks of the suite.");
  const wanted = taskUids.map((uid) => uid.toLowerCase());
  const repeated = wanted.find((uid, index) => wanted.indexOf(uid) !== index);
  if (repeated !== undefined) throw launchInvalid("tasks", `The task ${repeated} is given twice.`);
  const unknown = wanted.find((uid) => !tasks.some((task) => task.uid === uid));
  if (unknown !== undefined) throw launchInvalid("tasks", `The suite has no task ${JSON.stringify(unknown)}.`);
  return tasks.filter(({ uid }) => wanted.includes(uid));
}

/** Throws `launch_invalid` if the benchmark run would have too many trials. */
export function checkTrialCount(tasks: number, configurations: number, repetitionCount: number): void {
  const trials = tasks * configurations * repetitionCount;
  if (trials > TRIALS_MAX) {
    throw launchInvalid(
      "repetition_count",
      `A benchmark run has at most ${TRIALS_MAX} trials; ${tasks} tasks × ${configurations} configurations × ${repetitionCount} repetitions are ${trials}.`,
    );
  }
}

/** Returns whether runs of the agent are in the scope of a scorer. */
const isApplicable = ({ scopeMode, agents }: Scorer, agentUid: string): boolean =>
  scopeMode === "all_agents" || agents.some((agent) => agent.agentUid === agentUid);

/**
 * Returns the scorers that judge the trials: the correctness scorer first, then those that are applicable to the agent,
 * by name, restricted to the selection. Without a selection, disabled scorers are left out. Errors: launch_invalid.
 */
export function selectScorers(
  managed: Scorer,
  scorers: readonly Scorer[],
  selection: readonly string[],
  agentUid: string,
): readonly Scorer[] {
  const chosen = new Set(selection.map((text) => scorerNamed([managed, ...scorers], text, agentUid).uid));
  const others = scorers.filter(
    (scorer) =>
      scorer.kind === "user" &&
      (selection.length === 0 ? scorer.enabled && isApplicable(scorer, agentUid) : chosen.has(scorer.uid)),
  );
  return [managed, ...others.toSorted((a, b) => (a.name < b.name ? -1 : 1))];
}

function scorerNamed(scorers: readonly Scorer[], text: string, agentUid: string): Scorer {
  const scorer = scorers.find(({ uid, id }) => uid === text.toLowerCase() || String(id) === text);
  if (!scorer) throw launchInvalid("scorer_selection", `The factory has no scorer ${JSON.stringify(text)}.`);
  if (scorer.kind === "user" && !isApplicable(scorer, agentUid)) {
    throw launchInvalid(
      "scorer_selection",
      `The scorer ${JSON.stringify(scorer.name)} is not configured for the suite's agent.`,
    );
  }
  return scorer;
}

/** Checks that the trials of a benchmark run can be scored again with this input. Errors: launch_invalid. */
export function checkReplay(replayed: BenchmarkRun | undefined, suiteUid: string, input: LaunchInput): BenchmarkRun {
  const field = "historical_replay_run_uid";
  if (!replayed || replayed.suiteUid !== suiteUid)
    throw launchInvalid(field, `The suite has no benchmark run ${JSON.stringify(input.historicalReplayRunUid)}.`);
  if (replayed.completedAt === null)
    throw launchInvalid(field, `The benchmark run ${replayed.uid} has not finished (it is ${replayed.state}).`);
  if (input.configurations !== undefined)
    throw launchInvalid(
      "configurations",
      "A replay has the configurations of the replayed benchmark run; leave configurations out.",
    );
  if (input.repetitionCount > replayed.repetitionCount) {
    throw launchInvalid(
      "repetition_count",
      `The replayed benchmark run has ${replayed.repetitionCount} repetitions (got ${input.repetitionCount}).`,
    );
  }
  return replayed;
}
