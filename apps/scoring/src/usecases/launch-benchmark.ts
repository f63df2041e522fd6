import { actorOf, type Caller } from "@millwright/caller";
import { DomainError } from "@millwright/errors";
import { idempotentRequest } from "@millwright/idempotency";
import { as, isUuid, newUid } from "@millwright/ids";
import type { BenchmarkRun, BenchmarkRunUid } from "../domain/benchmark-run.ts";
import {
  checkNumbers,
  checkReplay,
  checkTrialCount,
  launchInvalid,
  selectScorers,
  selectTasks,
  type LaunchedBenchmark,
  type LaunchInput,
  type PlannedTrial,
} from "../domain/launch.ts";
import { manifestHash, type Manifest } from "../domain/manifest.ts";
import type { Scorer } from "../domain/scorer.ts";
import { checkConfigurations } from "../domain/configuration-rules.ts";
import type { SuiteWithTasks } from "../domain/suite.ts";
import { benchmarkRunCreated } from "../events/benchmark-launched.ts";
import { originOf } from "../events/origin.ts";
import type { BenchmarkRunStore } from "../store/benchmark-run-store.ts";
import type { LaunchStore } from "../store/launch-store.ts";
import type { ScorerStore } from "../store/scorer-store.ts";
import { freezeManifest, type FreezeDeps } from "./freeze-manifest.ts";
import { frozenScorer, scorerIdentifiers } from "./frozen-records.ts";
import { ensureManagedScorer, type ManagedScorerDeps } from "./managed-scorer.ts";
import type { FactoryView } from "./scope.ts";
import { findSuiteAgent, type ReferenceDeps } from "./suite-references.ts";
import { findBenchmarkFactory, findSuite, type SuiteScopeDeps } from "./suite-scope.ts";

export type LaunchDeps = SuiteScopeDeps &
  ReferenceDeps &
  FreezeDeps &
  ManagedScorerDeps & {
    scorers: Pick<ScorerStore, "list">;
    benchmarkRuns: Pick<BenchmarkRunStore, "find">;
    launches: Pick<LaunchStore, "findLaunched" | "launch">;
  };

export type LaunchRequest = LaunchInput & {
  readonly factoryUid: string;
  readonly suiteUid: string;
  readonly idempotencyKey: string;
};

/** Maximum number of tries of a launch, which restarts if a scorer is deleted while it is being frozen. */
const TRIES_MAX = 5;
/** Maximum size of a manifest's content as JSON, in bytes; a limit of this platform. */
const MANIFEST_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Launches a benchmark run: freezes the version of the suite that is current at the start of the launch into a
 * manifest, and starts its trials (tasks × configurations × repetitions). Each successful request creates a benchmark
 * run, unless an earlier request had the same idempotency key.
 *
 * Errors: factory_not_found · suite_not_found · not_authorized · launch_invalid · agent_not_found · model_unknown ·
 * scorers_changing (conflict) · idempotency_mismatch (conflict).
 */
export async function launchBenchmark(
  deps: LaunchDeps,
  caller: Caller,
  { idempotencyKey, ...input }: LaunchRequest,
): Promise<LaunchedBenchmark> {
  const factory = await findBenchmarkFactory(deps, caller, input.factoryUid, "run.create");
  const request = idempotentRequest(actorOf(caller).uid, "launch-benchmark", idempotencyKey, input);
  const known = request && (await deps.launches.findLaunched(request, deps.clock.now()));
  if (known) return known;
  const parallelism = checkNumbers(input);
  for (let tries = 1; tries <= TRIES_MAX; tries++) {
    const { suite } = await findSuite(deps, caller, input, "run.create");
    const { manifest, replayed } = await prepare(deps, caller, factory, suite, input);
    const trials = plannedTrials(manifest);
    const run = benchmarkRun(suite, manifest, caller, parallelism, replayed, deps.clock.now());
    const launched = await deps.launches.launch(
      run,
      trials,
      benchmarkRunCreated(run, trials.length, originOf(caller)),
      request,
    );
    if (launched) return launched;
  }
  throw new DomainError({
    kind: "conflict",
    reason: "scorers_changing",
    message: "Scorers of the factory were deleted during the launch. Launch again.",
  });
}

type Prepared = { readonly manifest: Manifest; readonly replayed?: BenchmarkRun };

async function prepare(
  deps: LaunchDeps,
  caller: Caller,
  factory: FactoryView,
  suite: SuiteWithTasks,
  input: LaunchInput,
): Promise<Prepared> {
  const { historicalReplayRunUid, repetitionCount, scorerSelection } = input;
  const replayed =
    historicalReplayRunUid === undefined
      ? undefined
      : checkReplay(await findRun(deps, historicalReplayRunUid), suite.uid, input);
  const checked = replayed ? undefined : plannedOf(suite, input);
  const managed = await ensureManagedScorer(deps, caller, factory);
  const scorers = selectScorers(
    managed,
    await deps.scorers.list(factory.uid, { includeManaged: false }),
    scorerSelection,
    suite.agentUid,
  );
  if (replayed) return { replayed, manifest: replayManifest(replayed.manifest, suite, scorers, input) };
  const agent = await findSuiteAgent(deps, caller, factory, suite.agentUid, undefined);
  const manifest = await freezeManifest(deps, caller, {
    factory,
    suite,
    agent,
    scorers,
    repetitionCount,
    scorerSelection,
    ...checked!,
  });
  const bytes = Buffer.byteLength(JSON.stringify(manifest.content));
  if (bytes > MANIFEST_BYTES_MAX)
    throw launchInvalid(
      "tasks",
      `The launch has ${bytes} bytes of frozen tasks and configurations; the limit is ${MANIFEST_BYTES_MAX}.`,
    );
  return { manifest };
}

function plannedOf(suite: SuiteWithTasks, input: LaunchInput) {
  const tasks = selectTasks(suite.tasks, input.taskUids);
  const configurations =
    input.configurations === undefined
      ? suite.configurations
      : checkConfigurations(input.configurations, suite.configurations, newUid, launchInvalid);
  if (configurations.length === 0)
    throw launchInvalid("configurations", "A launch needs at least one configuration, in the request or in the suite.");
  checkTrialCount(tasks.length, configurations.length, input.repetitionCount);
  return { tasks, configurations };
}

const findRun = async (deps: LaunchDeps, uid: string): Promise<BenchmarkRun | undefined> =>
  isUuid(uid) ? deps.benchmarkRuns.find(as<BenchmarkRunUid>(uid.toLowerCase())) : undefined;

/**
 * Returns a manifest with the frozen tasks and configurations of the replayed run and the present scorers. Errors:
 * launch_invalid.
 */
function replayManifest(
  { content, identifiers }: Manifest,
  suite: SuiteWithTasks,
  scorers: readonly Scorer[],
  input: LaunchInput,
): Manifest {
  const chosen = new Set(selectTasks(identifiers.tasks, input.taskUids).map(({ uid }) => uid));
  const isChosen = (_: unknown, index: number): boolean => chosen.has(identifiers.tasks[index]!.uid);
  return {
    content: {
      ...content,
      repetition_count: input.repetitionCount,
      tasks: content.tasks.filter(isChosen),
      scorers: scorers.map(frozenScorer),
    },
    identifiers: {
      ...identifiers,
      suite_version: suite.version,
      tasks: identifiers.tasks.filter(isChosen),
      scorers: scorerIdentifiers(scorers),
      scorer_selection: input.scorerSelection,
    },
  };
}

/** Returns one trial per task, configuration and repetition, in this order. */
function plannedTrials({ content, identifiers }: Manifest): PlannedTrial[] {
  const repetitions = Array.from({ length: content.repetition_count }, (_, index) => index);
  const trials = identifiers.tasks.flatMap((task) =>
    identifiers.configurations.flatMap((configuration) =>
      repetitions.map((repetition) => ({
        uid: newUid(),
        configuration_uid: configuration.uid,
        task_uid: task.uid,
        rep_index: repetition,
      })),
    ),
  );
  return trials.map((trial, position) => ({ ...trial, position }));
}

function benchmarkRun(
  suite: SuiteWithTasks,
  manifest: Manifest,
  caller: Caller,
  parallelism: number,
  replayed: BenchmarkRun | undefined,
  now: Date,
): BenchmarkRun {
  const { type, uid } = actorOf(caller);
  return {
    uid: newUid<BenchmarkRunUid>(),
    suiteUid: suite.uid,
    suiteName: suite.name,
    suiteVersion: suite.version,
    factoryUid: suite.factoryUid,
    teamUid: suite.teamUid,
    state: "pending",
    manifest,
    manifestHash: manifestHash(manifest.content),
    repetitionCount: manifest.content.repetition_count,
    agentUid: replayed?.agentUid ?? suite.agentUid,
    agentName: manifest.content.agents[0]!.name,
    parallelism,
    replayedRunUid: replayed?.uid ?? null,
    incompleteReason: null,
    creator: { type, uid },
    createdAt: now,
    updatedAt: now,
    startedAt: null,
    completedAt: null,
  };
}
