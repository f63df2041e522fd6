import type { DefinitionStore, StoredPart } from "../../catalog/store/definition-store.ts";
import type { Sql } from "@millwright/database";
import type { ModelPriceStore } from "../../catalog/store/model-price-store.ts";
import { findReferencedSkills, type FindReferencedSkillsDeps } from "./find-referenced-skills.ts";
import { actorOf, type Caller } from "@millwright/caller";
import { invalidArgument, requireConfigWithin } from "@millwright/errors";
import type { AgentUid, FactoryUid, TeamUid } from "@millwright/ids";
import {
  readLayerConfig,
  type JsonObject,
  type LayerConfig,
  type RepositoryRef,
} from "../../catalog/domain/agent-config.ts";
import { chooseSkills, offeredSkills } from "../../catalog/domain/choose-skills.ts";
import { codeHostFor, type CodeHost } from "../../catalog/domain/code-host.ts";
import { resolveConfig, type ConfigLayer, type ResolvedConfig } from "../../catalog/domain/config-resolution.ts";
import type { Skill } from "../../catalog/domain/definition-part.ts";
import type { Environment } from "../../catalog/domain/environment.ts";
import { checkJudgeModel, judgeLayers } from "../domain/judge.ts";
import { frozenMcpServers, type ManagedMcpServers } from "../../catalog/domain/mcp-servers.ts";
import { chooseModel, harnessModel, SCRIPTED, type ModelCatalogue } from "../../catalog/domain/models.ts";
import { harnessSecret, publicConfig } from "../../catalog/domain/public-config.ts";
import type { KnownAgent, ResolvedAgent } from "../../catalog/domain/resolved-agent.ts";
import type { FrozenConfig, ResolvedRun, ResolveRunRequest } from "../domain/resolved-run.ts";
import type { FrozenRepository } from "../domain/pinned-repository.ts";
import type { Owner } from "../domain/run.ts";
import { factorySpec } from "../../catalog/domain/skill-spec.ts";
import { pinnedTo } from "../domain/trial-settings.ts";
import { findEnvironment, type FindEnvironmentDeps } from "./find-environment.ts";
import { findAgent, type FindAgentDeps } from "./find-run-agent.ts";
import { findRunner } from "./find-runner.ts";
import { secretsOf, isOwn, configOf, listOf, textOf } from "../domain/run-environment.ts";

export type ResolveRunDeps = FindAgentDeps &
  FindEnvironmentDeps &
  FindReferencedSkillsDeps & {
    readonly definitions: Pick<DefinitionStore, "find" | "findRunner" | "inForce">;
    readonly codeHosts: { list(teams: readonly TeamUid[]): Promise<readonly CodeHost[]> };
    /** Returns the models of a team that has these secrets. */
    readonly models: (teamSecrets: readonly string[]) => ModelCatalogue;
    readonly managedMcpServers: ManagedMcpServers;
    readonly sql: Sql;
    readonly modelPrices: Pick<ModelPriceStore, "current">;
  };

/**
 * Resolves everything a run needs from its request, its agent, the agent's factory and the team, and freezes it: later
 * changes of these do not affect the run. Names are checked here, so that a run that is accepted can be executed. The
 * agent is not read again if it is `known`.
 *
 * Errors: agent_not_found · agent_needs_team · environment_not_found · environment_personal · runner_not_found ·
 * runner_unsupported · skill_not_found · skill_malformed · model_unknown · model_disabled · secrets_need_team ·
 * config_invalid · config_conflict · cost_limit_unpriced · text_too_large (too_large).
 */
export async function resolveRunConfig(
  deps: ResolveRunDeps,
  caller: Caller,
  request: ResolveRunRequest,
  known?: KnownAgent,
): Promise<ResolvedRun> {
  const agent = await findAgent(deps, caller, request, known);
  const { judge, trial } = request;
  const { config: resolved, provenance } = resolveConfig(
    judge ? judgeLayers(request.config, agent.layers) : layersOf(overridden(request, agent), agent),
  );
  // A judge belongs to a factory, but has no agent.
  const factoryUid = (agent.factoryUid ?? (judge && request.factoryUid)) as FactoryUid | undefined;
  const part = factoryUid ? await deps.definitions.find(factoryUid, agent.definitionVersion) : undefined;
  const environment = await findEnvironment(deps, caller, request.owner, resolved.environmentId);
  const runner = await findRunner(deps, request.owner, part, resolved.runner);
  const isOwnHarness = resolved.harness.type === "oz";
  const catalogue = deps.models(agent.teamSecrets);
  const model = isOwnHarness ? chooseModel(catalogue, resolved.modelId) : harnessModel(catalogue, resolved.harness);
  const config =
    resolved.costLimitMicros === undefined
      ? resolved
      : await withCostLimit(deps, model.id, resolved, judge !== undefined);
  const isSkillRun = provenance["skills"] === "request";
  if (judge) checkJudgeModel(judge, model.id);
  const repositories = request.repositories ?? pinnedTo(trial, judge ? [] : repositoriesOf(environment, config, part));
  const ownSpec = (path: string): string => factorySpec(factoryUid!, path);
  const ownSkills = (judge ? [] : (part?.skills ?? [])).map((skill) => ({ ...skill, path: ownSpec(skill.path) }));
  // A text may refer to a skill of the agent's factory by its path alone.
  const texts = config.skills.map((text) => (part?.skills.some(({ path }) => path === text) ? ownSpec(text) : text));
  const { available, names } = await skillsToChooseFrom(deps, request.owner, ownSkills, texts, repositories);
  const skills = chooseSkills(available, agent.agentName ?? "", names, isSkillRun);
  const secretNames = secretsOf(config, isOwn(environment, request.owner) ? environment : undefined);
  if (request.owner.type === "user" && (secretNames.length > 0 || harnessSecret(config) !== undefined))
    throw invalidArgument(
      "secrets_need_team",
      "Managed secrets belong to teams, and a personal run has none. Create the run in a team.",
    );

  const dockerImage = runner?.dockerImage || textOf(environment, "docker_image");
  const retention = configOf(environment)["failure_session_retention_minutes"] as number | null | undefined;
  // A run of a skill is labelled with the name of the skill, unless the request sets a name.
  const name = isSkillRun && provenance["name"] !== "request" ? (skills[0]?.name ?? config.name) : config.name;
  const frozen: FrozenConfig = {
    agent_prompt: config.prompt ?? "",
    base_prompt: config.basePrompt ?? "",
    model_id: model.id,
    provider: model.provider,
    harness: config.harness.type,
    reasoning_level: config.harness.reasoningLevel || undefined,
    harness_secret: harnessSecret(config) || undefined,
    skills: offeredSkills(ownSkills, agent.agentName ?? "", skills).map((skill) =>
      frozenSkill(skill, isSkillRun && skills.includes(skill)),
    ),
    repositories: await connect(deps, request.owner, repositories),
    setup_commands: [...(runner?.setupCommands ?? []), ...listOf(environment, "setup_commands").map(String)],
    docker_image: dockerImage,
    instance_shape: runner?.vcpus && runner.memoryGb ? { vcpus: runner.vcpus, memory_gb: runner.memoryGb } : undefined,
    allowed_hosts: configOf(environment)["allowed_hosts"]
      ? listOf(environment, "allowed_hosts").map(String)
      : undefined,
    env: {},
    secret_names: secretNames,
    mcp_servers:
      Object.keys(config.mcpServers).length > 0
        ? frozenMcpServers(config.mcpServers, deps.managedMcpServers)
        : undefined,
    worker_host: config.workerHost || undefined,
    requirements: {
      harness: config.harness.type,
      image: dockerImage || undefined,
      arch: runner?.arch || undefined,
      worker_host: config.workerHost || undefined,
    },
    idle_timeout_minutes: config.idleTimeoutMinutes,
    failure_session_retention_minutes: retention || undefined,
    on_worker_loss: config.onWorkerLoss,
    step_limit: config.stepLimit || undefined,
    token_limit: config.tokenLimit || undefined,
    cost_limit_micros: config.costLimitMicros || undefined,
    factory_uid: factoryUid,
    agent_uid: agent.agentUid as AgentUid | undefined,
    agent_name: agent.agentName || undefined,
    agent_type: agent.agentType || undefined,
    definition_version: part?.version,
    environment_uid: environment?.uid,
    judge: judge ? { scorer_uid: judge.scorerUid, classifications: judge.classifications } : undefined,
    workspace: request.workspace,
    trial,
    spawnable_agents: judge ? [] : agent.siblingAgents,
    provenance,
  };
  const agentConfig = publicConfig(config, {
    name: name || undefined,
    modelId: isOwnHarness ? model.id : undefined,
    runnerUid: runner?.uid,
    skills: skills.map(({ path }) => path),
  }) as ResolvedRun["agentConfig"];
  requireConfigWithin("The configuration of the run with its agent's, factory's and team's", agentConfig);
  return {
    agentConfig,
    frozen,
    queueSettings: agent.queueSettings,
    skill: skills[0]
      ? { name: skills[0].name, description: skills[0].description, full_path: skills[0].path }
      : undefined,
    executorUid: agent.agentUid ?? actorOf(caller).uid,
  };
}

/** Returns the skills of the agent's factory and those to which the other names refer, all with their full specs. */
async function skillsToChooseFrom(
  deps: ResolveRunDeps,
  owner: Owner,
  own: readonly Skill[],
  texts: readonly string[],
  repositories: readonly RepositoryRef[],
): Promise<{ available: Skill[]; names: string[] }> {
  const isOfFactory = (name: string): boolean => own.some((skill) => skill.path === name || skill.name === name);
  const found = await findReferencedSkills(
    deps,
    owner,
    texts.filter((name) => !isOfFactory(name)),
    repositories,
  );
  return {
    available: [...own, ...found.map(({ skill }) => skill)],
    names: texts.map((name) =>
      isOfFactory(name) ? name : (found.find(({ text }) => text === name)?.skill.path ?? name),
    ),
  };
}

/**
 * Returns the configuration with its cost limit if the model has a price. The cost limit of a judge is a default of the
 * platform in addition to its step limit; without a price it is removed, and the step limit remains.
 *
 * Errors: cost_limit_unpriced, because without a price the limit cannot be enforced.
 */
async function withCostLimit(
  deps: ResolveRunDeps,
  modelId: string,
  config: ResolvedConfig,
  isJudge: boolean,
): Promise<ResolvedConfig> {
  if (modelId === SCRIPTED || (modelId !== "" && (await deps.modelPrices.current(deps.sql, modelId)))) return config;
  const { costLimitMicros: _, ...unlimited } = config;
  if (isJudge) return unlimited;
  throw invalidArgument(
    "cost_limit_unpriced",
    `config.cost_limit_usd cannot be enforced: the model "${modelId || config.harness.type}" has no price here.`,
    { key: "cost_limit_usd" },
  );
}

const frozenSkill = (
  { name, description, body, path }: Skill,
  isPreloaded: boolean,
): FrozenConfig["skills"][number] => ({
  ...{ name, description, body, spec: path },
  preloaded: isPreloaded || undefined,
});

/** Returns the request with the overrides that a benchmark trial above it sets for its agent. */
function overridden(request: ResolveRunRequest, { agentUid = "" }: ResolvedAgent): ResolveRunRequest {
  const override = request.trial?.agent_overrides[agentUid.toLowerCase()];
  return override ? { ...request, dispatcherConfig: { ...request.dispatcherConfig, ...override } } : request;
}

const layersOf = (request: ResolveRunRequest, agent: ResolvedAgent): ConfigLayer[] => [
  { source: "request", config: requestLayer(request) },
  ...(request.dispatcherConfig ? [{ source: "dispatcher" as const, config: ownLayer(request.dispatcherConfig) }] : []),
  ...agent.layers.map(({ source, config: json }) => ({ source, config: readLayerConfig(json) })),
];

/** `skill` of the request takes precedence over `config.skill_spec`. */
const requestLayer = (request: ResolveRunRequest): LayerConfig => ({
  ...ownLayer(request.config),
  ...(request.skill && { skills: [request.skill] }),
});

/** Returns a configuration layer without the settings that only agents and factories may set. */
function ownLayer(json: JsonObject): LayerConfig {
  const { prompt: _1, grantedSecrets: _2, grantedMcpServers: _3, repositories: _4, ...config } = readLayerConfig(json);
  return config;
}

/** Returns the environment's repositories if it has any, otherwise those of the configuration or the factory. */
function repositoriesOf(
  environment: Environment | undefined,
  config: ResolvedConfig,
  part: StoredPart | undefined,
): readonly RepositoryRef[] {
  const own = listOf(environment, "github_repos") as readonly RepositoryRef[];
  return own.length > 0 ? own : (config.repositories ?? part?.repositories ?? []);
}

/** Adds the connections of repositories. Repositories that are already frozen retain their connection and commit. */
async function connect(
  deps: ResolveRunDeps,
  owner: Owner,
  repositories: readonly FrozenRepository[],
): Promise<FrozenConfig["repositories"]> {
  if (repositories.length === 0) return [];
  const hosts = owner.type === "team" ? await deps.codeHosts.list([owner.uid as TeamUid]) : [];
  return repositories.map(({ owner: repoOwner, repo, code_host_uid: known, commit }) => {
    const uid = known ?? codeHostFor(hosts, repoOwner)?.uid;
    return { owner: repoOwner, repo, code_host_uid: uid, commit };
  });
}
