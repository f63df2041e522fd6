import { create, type JsonObject, type MessageInitShape } from "@bufbuild/protobuf";
import type { z } from "zod";
import { scoring } from "@millwright/contracts";
import { omitUndefined } from "@millwright/json";
import type * as schemas from "./benchmark-schemas.ts";
import { isoTime } from "../formats/json-values.ts";
import type { Profile } from "../identity/profiles.ts";

type TaskJson = z.input<typeof schemas.SuiteTask>;
type NewTask = z.output<typeof schemas.SuiteTaskPatch> & { uid?: string | undefined };
type NewConfiguration = z.output<typeof schemas.NewConfiguration>;
type SuiteContent = Omit<z.output<typeof schemas.SuitePatch>, "tasks"> & { tasks?: readonly NewTask[] | undefined };

/** Returns the members that a task and a task draft share. */
export const draftRecord = (task: scoring.SuiteTask): z.input<typeof schemas.TaskDraft> => ({
  title: task.title,
  prompt: task.prompt,
  source_run_id: task.sourceRunUid ?? null,
  starting_repo_refs: task.startingRepoRefs.map(({ codeForge, owner, repo, ref }) => ({
    code_forge: codeForge,
    owner,
    repo,
    ...omitUndefined({ ref: ref || undefined }),
  })),
  tags: task.tags,
  labels: task.labels,
});

export const taskRecord = (task: scoring.SuiteTask): TaskJson => ({
  ...draftRecord(task),
  uid: task.uid,
  id: Number(task.id),
  success_criteria: task.successCriteria,
  rule: (task.rule ?? null) as TaskJson["rule"],
});

const configurationRecord = (one: scoring.Configuration): z.input<typeof schemas.Configuration> => ({
  uid: one.uid,
  id: Number(one.id),
  role: one.role as "baseline",
  display_name: one.displayName,
  agent_configs: one.agentConfigs.map(({ agentUid, harness, model, agentName, harnessAuthSecretName }) => ({
    ...{ agent_uid: agentUid, harness, model },
    ...omitUndefined({ agent_name: agentName || undefined, harness_auth_secret_name: harnessAuthSecretName }),
  })),
  ...omitUndefined({
    harness: one.harness || undefined,
    model: one.model || undefined,
    runner_id: one.runnerUid || undefined,
    harness_auth_secret_name: one.harnessAuthSecretName,
  }),
});

/** Returns a suite as list responses contain it, without tasks. */
export const suiteRecord = (
  suite: scoring.Suite,
  creators: ReadonlyMap<string, Profile>,
): z.input<typeof schemas.Suite> => ({
  uid: suite.uid,
  factory_uid: suite.factoryUid,
  name: suite.name,
  agent_uid: suite.agentUid,
  factory_agent_type: suite.factoryAgentType,
  version: suite.version,
  created_at: isoTime(suite.createdAt!),
  updated_at: isoTime(suite.updatedAt!),
  ...omitUndefined({
    description: suite.description,
    configurations: suite.configurations.length > 0 ? suite.configurations.map(configurationRecord) : undefined,
    creator: creators.get(suite.creatorUid),
  }),
});

export const wholeSuiteRecord = (
  suite: scoring.Suite,
  creators: ReadonlyMap<string, Profile>,
): z.input<typeof schemas.SuiteWithTasks> => ({
  ...suiteRecord(suite, creators),
  tasks: suite.tasks.map(taskRecord),
  spawnable_descendant_agent_uids: suite.spawnableDescendantAgentUids,
});

/** Returns the message of a task. Absent and null members stay unset. */
export const taskMessage = (body: NewTask, uid = body.uid): scoring.SuiteTask =>
  create(scoring.SuiteTaskSchema, {
    ...omitUndefined({
      uid,
      title: body.title,
      prompt: body.prompt,
      successCriteria: body.success_criteria,
      sourceRunUid: body.source_run_id ?? undefined,
      startingRepoRefs: body.starting_repo_refs?.map(({ code_forge: codeForge, owner, repo, ref = "" }) => ({
        codeForge,
        owner,
        repo,
        ref,
      })),
      tags: body.tags,
      labels: body.labels,
      rule: (body.rule ?? undefined) as JsonObject | undefined,
    }),
  });

export const configurationMessage = (
  given: NewConfiguration,
): MessageInitShape<typeof scoring.ConfigurationSchema> => ({
  role: given.role,
  displayName: given.display_name ?? "",
  harness: given.harness ?? "",
  model: given.model ?? "",
  runnerUid: given.runner_id ?? "",
  ...omitUndefined({ uid: given.uid, harnessAuthSecretName: given.harness_auth_secret_name ?? undefined }),
  agentConfigs: (given.agent_configs ?? []).map(
    ({ agent_uid: agentUid, harness, model, agent_name: agentName = "", harness_auth_secret_name: secret }) => ({
      ...{ agentUid, harness, model, agentName },
      ...omitUndefined({ harnessAuthSecretName: secret ?? undefined }),
    }),
  ),
});

/** Returns the message of a suite. Absent and null members stay unset. */
export const suiteMessage = (factoryUid: string, uid: string, body: SuiteContent): scoring.Suite =>
  create(scoring.SuiteSchema, {
    ...{ factoryUid, uid },
    ...omitUndefined({
      name: body.name,
      description: body.description ?? undefined,
      agentUid: body.agent_uid,
      factoryAgentType: body.factory_agent_type,
      configurations: body.configurations?.map(configurationMessage),
      tasks: body.tasks?.map((task) => taskMessage(task)),
    }),
  });
