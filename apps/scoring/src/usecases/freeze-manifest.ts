import type { Caller } from "@millwright/caller";
import { invalidArgument } from "@millwright/errors";
import type { JsonObject } from "@millwright/json";
import type { Manifest, PinnedRepo } from "../domain/manifest.ts";
import type { Scorer } from "../domain/scorer.ts";
import { isCommit } from "../domain/suite-rules.ts";
import type { Configuration, RepoRef, SuiteTask, SuiteWithTasks } from "../domain/suite.ts";
import { freezeRunners, type TeamRunner } from "./freeze-runners.ts";
import { repositoriesOf, type EnvironmentReader } from "./compose-task.ts";
import {
  frozenAgent,
  frozenConfiguration,
  frozenScorer,
  scorerIdentifiers,
  skillNames,
  type SkillText,
} from "./frozen-records.ts";
import type { FactoryView } from "./scope.ts";
import type { ReferenceDeps, SuiteAgent } from "./suite-references.ts";

/** Type of the harness of the platform's own agent. */
const OWN_HARNESS = "oz";

export type FreezeDeps = Pick<ReferenceDeps, "agents"> & {
  environments: EnvironmentReader;
  catalog: {
    /** Returns the models that the team can name, and the default model. */
    models(caller: Caller, teamUid: string): Promise<{ defaultModelId: string; ids: ReadonlySet<string> }>;
    /** Returns the skills that the factory's agents can use, by name. */
    skills(caller: Caller, teamUid: string, factoryUid: string): Promise<ReadonlyMap<string, SkillText>>;
    /** Returns the runners of the active definitions of the team's factories. */
    runners(requestId: string, teamUid: string): Promise<readonly TeamRunner[]>;
    /** Returns the commits of refs, in the order of the refs. Errors for unknown refs name the repository. */
    commits(requestId: string, teamUid: string, refs: readonly RepoRef[]): Promise<readonly string[]>;
  };
};

export type FreezeInput = {
  readonly factory: FactoryView;
  readonly suite: SuiteWithTasks;
  readonly agent: SuiteAgent;
  readonly tasks: readonly SuiteTask[];
  readonly configurations: readonly Configuration[];
  readonly scorers: readonly Scorer[];
  readonly repetitionCount: number;
  readonly scorerSelection: readonly string[];
};

/**
 * Reads everything that decides the results of a benchmark run and returns it as its manifest. Refs of repositories are
 * resolved to commits.
 *
 * Errors: agent_not_found · model_unknown (invalid_argument) · launch_invalid (a repository, ref or runner that does
 * not exist, an agent that the suite's agent cannot delegate to).
 */
export async function freezeManifest(deps: FreezeDeps, caller: Caller, input: FreezeInput): Promise<Manifest> {
  const { factory, suite, agent, tasks, configurations, scorers } = input;
  const agents = [agent, ...(await siblingsOf(deps, caller, factory, agent))];
  await requireModels(deps, caller, factory.teamUid, agent, configurations);
  const environments = await Promise.all(agents.map((each) => environmentOf(deps, caller, each)));
  const isSkilled = agents.some((each) => skillNames(each).length > 0);
  const skills = isSkilled
    ? await deps.catalog.skills(caller, factory.teamUid, factory.uid)
    : new Map<string, SkillText>();
  const known = await deps.catalog.runners(caller.requestId, factory.teamUid);
  const { runners, names } = freezeRunners(known, factory.uid, agents, configurations);
  const defaults = defaultRepositories(environments[0], agent, factory);
  const pinned = await pinAll(
    deps,
    caller,
    factory.teamUid,
    tasks.map(({ startingRepoRefs }) => (startingRepoRefs.length > 0 ? startingRepoRefs : defaults)),
  );
  return {
    content: {
      format: "millwright.benchmark.v1",
      repetition_count: input.repetitionCount,
      agents: agents.map((each, index) => frozenAgent(each, environments[index], skills)),
      tasks: tasks.map((task, index) => ({
        title: task.title,
        prompt: task.prompt,
        success_criteria: task.successCriteria,
        rule: task.rule,
        tags: task.tags,
        labels: task.labels,
        repositories: pinned[index]!,
      })),
      configurations: configurations.map((configuration, index) =>
        frozenConfiguration(configuration, agents, names[index]!),
      ),
      runners,
      scorers: scorers.map(frozenScorer),
    },
    identifiers: {
      factory_uid: factory.uid,
      suite_uid: suite.uid,
      suite_version: suite.version,
      agents: agents.map(({ uid, layers }) => ({
        uid,
        layers: layers.map((layer) => ({ source: layer.source, uid: layer.uid, version: layer.version })),
      })),
      tasks: tasks.map(({ uid, id, sourceRunUid }) => ({ uid, id, source_run_uid: sourceRunUid })),
      configurations: configurations.map(({ uid, id, runner_uid: runnerUid }) => ({ uid, id, runner_uid: runnerUid })),
      scorers: scorerIdentifiers(scorers),
      scorer_selection: input.scorerSelection,
    },
  };
}

async function siblingsOf(
  deps: FreezeDeps,
  caller: Caller,
  factory: FactoryView,
  agent: SuiteAgent,
): Promise<SuiteAgent[]> {
  const names = agent.siblings.toSorted();
  return Promise.all(names.map((name) => deps.agents.findByName(caller, factory.teamUid, factory.uid, name)));
}

/**
 * Checks that the models of the platform's own harness exist; the catalog does not have the models of other harnesses.
 * Errors: model_unknown.
 */
async function requireModels(
  deps: FreezeDeps,
  caller: Caller,
  teamUid: string,
  agent: SuiteAgent,
  configurations: readonly Configuration[],
): Promise<void> {
  const inherited =
    agent.layers
      .map(({ config }) => config["harness"] as { type?: unknown } | undefined)
      .find((harness) => harness !== undefined)?.type ?? OWN_HARNESS;
  const entries = configurations.flatMap((configuration) => [configuration, ...configuration.agent_configs]);
  const named = entries.filter(
    ({ harness, model }) => model !== "" && model !== "auto" && (harness || inherited) === OWN_HARNESS,
  );
  if (named.length === 0) return;
  const { ids } = await deps.catalog.models(caller, teamUid);
  const unknown = named.find(({ model }) => !ids.has(model));
  if (unknown)
    throw invalidArgument(
      "model_unknown",
      `There is no model ${JSON.stringify(unknown.model)}. GET /agent/models lists them.`,
      {
        field: "configurations",
      },
    );
}

async function environmentOf(
  deps: FreezeDeps,
  caller: Caller,
  { layers }: SuiteAgent,
): Promise<JsonObject | undefined> {
  const uid = layers
    .map(({ config }) => config["environment_id"])
    .find((value) => typeof value === "string" && value !== "");
  return typeof uid === "string" ? deps.environments.environment(caller, uid) : undefined;
}

/**
 * Returns the repositories for tasks without refs: those of the agent's environment, otherwise those of its factory.
 */
function defaultRepositories(environment: JsonObject | undefined, agent: SuiteAgent, factory: FactoryView): RepoRef[] {
  const own = agent.layers
    .map(({ config }) => config["repositories"])
    .find((value) => Array.isArray(value)) as unknown as FactoryView["repositories"] | undefined;
  return repositoriesOf(environment, {
    ...factory,
    repositories:
      factory.repositories.length > 0
        ? factory.repositories
        : (own ?? []).map((entry) => ({ ...entry, codeForge: "" })),
  });
}

/** Resolves every distinct ref once. A full commit id needs no call. */
async function pinAll(
  deps: FreezeDeps,
  caller: Caller,
  teamUid: string,
  refsOfTasks: readonly (readonly RepoRef[])[],
): Promise<PinnedRepo[][]> {
  const keyOf = ({ owner, repo, ref }: RepoRef): string => JSON.stringify([owner, repo, ref]);
  const moving = [
    ...new Map(
      refsOfTasks
        .flat()
        .filter(({ ref }) => !isCommit(ref))
        .map((ref) => [keyOf(ref), ref]),
    ).values(),
  ];
  const commits = moving.length === 0 ? [] : await deps.catalog.commits(caller.requestId, teamUid, moving);
  const commitOf = new Map(moving.map((ref, index) => [keyOf(ref), commits[index]!]));
  return refsOfTasks.map((refs) =>
    refs.map((ref) => ({
      code_forge: ref.code_forge,
      owner: ref.owner,
      repo: ref.repo,
      commit: commitOf.get(keyOf(ref)) ?? ref.ref,
    })),
  );
}
