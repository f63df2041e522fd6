import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { orchestrator } from "@millwright/contracts";
import { toDollars, type Price } from "@millwright/money";
import { optionalTimestamp } from "@millwright/rpc";
import type { CodeHost } from "../domain/code-host.ts";
import type { EnvironmentGrant } from "../domain/environment.ts";
import type { Model } from "../domain/models.ts";
import type { EnvironmentUse, EnvironmentView } from "../usecases/environments.ts";
import type { ListedSkill } from "../usecases/list-skills.ts";

export const modelMessage = (model: Model, price: Price | undefined): orchestrator.Model =>
  create(orchestrator.ModelSchema, {
    id: model.id,
    displayName: model.displayName,
    provider: model.publicProvider,
    visionSupported: model.visionSupported,
    description: model.description,
    disabled: model.disabled !== undefined,
    reasoningLevel: model.reasoningLevel,
    disableReason: model.disabled?.reason,
    disabledMessage: model.disabled?.message,
    cost: price ? costMessage(price) : undefined,
  });

const costMessage = (price: Price): orchestrator.ModelCost =>
  create(orchestrator.ModelCostSchema, {
    inputPerMillionTokens: toDollars(price.inputPerMillionMicros),
    outputPerMillionTokens: toDollars(price.outputPerMillionMicros),
    inputCacheReadPerMillionTokens:
      price.cacheReadPerMillionMicros === undefined ? undefined : toDollars(price.cacheReadPerMillionMicros),
    inputCacheWritePerMillionTokens:
      price.cacheWritePerMillionMicros === undefined ? undefined : toDollars(price.cacheWritePerMillionMicros),
  });

export const skillMessage = ({ name, variants }: ListedSkill): orchestrator.Skill =>
  create(orchestrator.SkillSchema, {
    name,
    variants: variants.map(
      ({ id, description, body, owner, repo, path, workerHost = "", environments, lastRunAt, error }) => ({
        ...{ id, description, basePrompt: body, owner, repo, path, workerHost, error, environments: [...environments] },
        lastRunTimestamp: optionalTimestamp(lastRunAt),
      }),
    ),
  });

export const environmentMessage = ({ environment, lastUse }: EnvironmentView): orchestrator.Environment =>
  create(orchestrator.EnvironmentSchema, {
    uid: environment.uid,
    ownerType: environment.owner.type,
    ownerUid: environment.owner.uid,
    config: environment.config as JsonObject,
    lastUpdated: timestampFromDate(environment.updatedAt),
    setupFailed: lastUse?.hasFailedSetup ?? false,
    creatorUid: environment.creatorUid,
    lastEditorUid: environment.lastEditorUid,
    linkSharing: environment.linkSharing,
    access: environment.access,
    lastTaskRunTimestamp: optionalTimestamp(lastUse?.createdAt),
    lastTaskCreated: lastUse ? taskMessage(lastUse) : undefined,
  });

const taskMessage = ({
  runUid,
  title,
  state,
  createdAt,
  updatedAt,
  startedAt,
}: EnvironmentUse): orchestrator.LastTask =>
  create(orchestrator.LastTaskSchema, {
    id: runUid,
    title,
    state,
    createdAt: timestampFromDate(createdAt),
    updatedAt: timestampFromDate(updatedAt),
    startedAt: optionalTimestamp(startedAt),
  });

export const grantMessage = ({ uid, grantee, createdAt }: EnvironmentGrant): orchestrator.EnvironmentGrant =>
  create(orchestrator.EnvironmentGrantSchema, {
    uid,
    granteeType: grantee.type,
    granteeUid: grantee.uid,
    createdAt: timestampFromDate(createdAt),
  });

export const codeHostMessage = ({ createdAt, owners, ...host }: CodeHost): orchestrator.CodeHost =>
  create(orchestrator.CodeHostSchema, { ...host, owners: [...owners], createdAt: timestampFromDate(createdAt) });
