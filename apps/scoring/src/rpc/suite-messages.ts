import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { scoring } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import type { GivenConfiguration } from "../domain/configuration-rules.ts";
import type { Configuration, Suite, SuiteTask, SuiteWithTasks, TaskContent } from "../domain/suite.ts";
import type { GivenTask, SuitePatch } from "../usecases/change-suite.ts";
import type { CreateSuiteInput } from "../usecases/create-suite.ts";

export const toSuiteMessage = (suite: Suite) => ({
  uid: suite.uid,
  factoryUid: suite.factoryUid,
  teamUid: suite.teamUid,
  name: suite.name,
  description: suite.description ?? undefined,
  agentUid: suite.agentUid,
  factoryAgentType: suite.factoryAgentType,
  configurations: suite.configurations.map(toConfigurationMessage),
  creatorUid: suite.creator.uid,
  version: suite.version,
  createdAt: timestampFromDate(suite.createdAt),
  updatedAt: timestampFromDate(suite.updatedAt),
});

export const toFullSuiteMessage = (suite: SuiteWithTasks, descendants: readonly string[] = []) => ({
  ...toSuiteMessage(suite),
  tasks: suite.tasks.map(toTaskMessage),
  spawnableDescendantAgentUids: [...descendants],
});

export const toTaskMessage = (task: SuiteTask) => ({
  uid: task.uid,
  id: BigInt(task.id),
  ...toTaskContentMessage(task),
});

export const toTaskContentMessage = (task: TaskContent) => ({
  title: task.title,
  prompt: task.prompt,
  successCriteria: task.successCriteria,
  sourceRunUid: task.sourceRunUid ?? undefined,
  startingRepoRefs: task.startingRepoRefs.map(({ code_forge: codeForge, owner, repo, ref }) => ({
    codeForge,
    owner,
    repo,
    ref,
  })),
  tags: [...task.tags],
  labels: task.labels,
  rule: task.rule ?? undefined,
});

const toConfigurationMessage = (
  configuration: Configuration,
): MessageInitShape<typeof scoring.ConfigurationSchema> => ({
  uid: configuration.uid,
  id: BigInt(configuration.id),
  role: configuration.role,
  displayName: configuration.display_name,
  harness: configuration.harness,
  model: configuration.model,
  runnerUid: configuration.runner_uid,
  harnessAuthSecretName: configuration.harness_auth_secret_name ?? undefined,
  agentConfigs: configuration.agent_configs.map((override) => ({
    agentUid: override.agent_uid,
    harness: override.harness,
    model: override.model,
    agentName: override.agent_name,
    harnessAuthSecretName: override.harness_auth_secret_name ?? undefined,
  })),
});

export const readConfiguration = (message: scoring.Configuration): GivenConfiguration => ({
  uid: message.uid || undefined,
  role: message.role,
  display_name: message.displayName,
  harness: message.harness,
  model: message.model,
  runner_uid: message.runnerUid,
  harness_auth_secret_name: message.harnessAuthSecretName || null,
  agent_configs: message.agentConfigs.map((override) => ({
    agent_uid: override.agentUid,
    harness: override.harness,
    model: override.model,
    agent_name: override.agentName,
    harness_auth_secret_name: override.harnessAuthSecretName || null,
  })),
});

export const readTask = (message: scoring.SuiteTask): TaskContent => ({
  title: message.title,
  prompt: message.prompt,
  successCriteria: message.successCriteria,
  sourceRunUid: message.sourceRunUid || null,
  startingRepoRefs: message.startingRepoRefs.map(({ codeForge, owner, repo, ref }) => ({
    code_forge: codeForge,
    owner,
    repo,
    ref,
  })),
  tags: message.tags,
  labels: message.labels,
  rule: message.rule ?? null,
});

const readGivenTask = (message: scoring.SuiteTask): GivenTask => ({ ...readTask(message), uid: message.uid });

/** Returns the input for creating a suite. Errors: suite_invalid. */
export function readNewSuite({ suite, idempotencyKey }: scoring.CreateSuiteRequest): CreateSuiteInput {
  const message = required(suite, "suite");
  return {
    factoryUid: message.factoryUid,
    uid: message.uid,
    name: message.name,
    description: message.description ?? null,
    agentUid: message.agentUid,
    factoryAgentType: message.factoryAgentType,
    configurations: message.configurations.map(readConfiguration),
    tasks: message.tasks.map(readTask),
    idempotencyKey,
  };
}

const SUITE_FIELDS: Readonly<Record<string, (message: scoring.Suite) => SuitePatch>> = {
  name: ({ name }) => ({ name }),
  description: ({ description }) => ({ description: description ?? null }),
  agent_uid: ({ agentUid }) => ({ agentUid }),
  factory_agent_type: ({ factoryAgentType }) => ({ factoryAgentType }),
  configurations: ({ configurations }) => ({ configurations: configurations.map(readConfiguration) }),
  tasks: ({ tasks }) => ({ tasks: tasks.map(readGivenTask) }),
};

/** Returns the changes of a suite. Errors: suite_invalid. */
export const readSuitePatch = ({ suite, updateMask }: scoring.UpdateSuiteRequest): SuitePatch =>
  readMasked(SUITE_FIELDS, required(suite, "suite"), updateMask?.paths ?? []);

const TASK_FIELDS: Readonly<Record<string, (task: TaskContent) => Partial<TaskContent>>> = {
  title: ({ title }) => ({ title }),
  prompt: ({ prompt }) => ({ prompt }),
  success_criteria: ({ successCriteria }) => ({ successCriteria }),
  source_run_uid: ({ sourceRunUid }) => ({ sourceRunUid }),
  starting_repo_refs: ({ startingRepoRefs }) => ({ startingRepoRefs }),
  tags: ({ tags }) => ({ tags }),
  labels: ({ labels }) => ({ labels }),
  rule: ({ rule }) => ({ rule }),
};

/** Returns the changes of a task. Errors: suite_invalid. */
export const readTaskPatch = ({ task, updateMask }: scoring.UpdateTaskRequest): Partial<TaskContent> =>
  readMasked(TASK_FIELDS, readTask(required(task, "task")), updateMask?.paths ?? []);

function readMasked<M, P extends object>(
  fields: Readonly<Record<string, (message: M) => P>>,
  message: M,
  paths: readonly string[],
): P {
  const unknown = paths.find((path) => !Object.hasOwn(fields, path));
  if (unknown !== undefined)
    throw invalidArgument(
      "suite_invalid",
      `The field ${JSON.stringify(unknown)} cannot be changed. Changeable fields: ${Object.keys(fields).join(", ")}.`,
      {
        field: unknown,
      },
    );
  return Object.assign({}, ...paths.map((path) => fields[path]!(message))) as P;
}

/** Throws `suite_invalid` if the message is missing. */
export function required<T>(message: T | undefined, field: string): T {
  if (message === undefined) throw invalidArgument("suite_invalid", `${field} is required.`, { field });
  return message;
}
