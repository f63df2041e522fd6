import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { factories } from "@millwright/contracts";
import type { Factory, FactoryChanges } from "../domain/factory.ts";
import { runnerUidOf } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import { checkMask } from "./field-mask.ts";

export function toFactoryMessage(factory: Factory): MessageInitShape<typeof factories.FactorySchema> {
  return {
    uid: factory.uid,
    name: factory.name,
    teamUid: factory.teamUid,
    codeForge: factory.codeForge,
    codeForges: factory.codeForges,
    repositories: factory.repositories.map(({ owner, repo, code_forge: codeForge = "" }) => ({
      owner,
      repo,
      codeForge,
    })),
    credentialStrategy: factory.credentialStrategy,
    agentDefaults: withRunnerUid(factory, factory.agentDefaults),
    scorerDefaults: withRunnerUid(factory, factory.scorerDefaults),
    creatorUid: factory.creatorUid,
    createdAt: timestampFromDate(factory.createdAt),
    updatedAt: timestampFromDate(factory.updatedAt),
    management: factory.management,
    definitionVersion: BigInt(factory.currentVersion),
    concurrencyLimit: factory.concurrencyLimit,
    queuePaused: factory.queuePaused,
    alias: factory.alias ?? undefined,
    description: factory.description ?? undefined,
    defaultEnvironment: factory.defaultEnvironment ?? undefined,
    defaultModel: factory.defaultModel ?? undefined,
    scoringDefaultModel: factory.scoringDefaultModel ?? undefined,
    integrations: factory.integrations ? { items: factory.integrations } : undefined,
    selfImprovement: factory.selfImprovement ?? undefined,
    foremanAgentUid: factory.foremanAgentUid ?? undefined,
  };
}

/** Files name runners; the record contains their uids. */
function withRunnerUid({ uid, management }: Factory, defaults: JsonObject): JsonObject {
  const { default_runner_uid: name } = defaults;
  return management === "live" || typeof name !== "string" || name === ""
    ? defaults
    : { ...defaults, default_runner_uid: runnerUidOf(uid, name) };
}

/** The public field names, each with its reader. An absent value or an empty text clears a field. */
const READERS = {
  name: ({ name }) => ({ name }),
  alias: ({ alias }) => ({ alias: alias || null }),
  description: ({ description }) => ({ description: description || null }),
  code_forge: ({ codeForge }) => ({ codeForge }),
  code_forges: ({ codeForges }) => ({ codeForges }),
  repositories: ({ repositories }) => ({
    repositories: repositories.map(({ owner, repo, codeForge }) => ({
      owner,
      repo,
      ...(codeForge && { code_forge: codeForge }),
    })),
  }),
  credential_strategy: ({ credentialStrategy }) => ({ credentialStrategy: credentialStrategy || "EXECUTOR" }),
  default_environment: ({ defaultEnvironment }) => ({ defaultEnvironment: defaultEnvironment || null }),
  default_model: ({ defaultModel }) => ({ defaultModel: defaultModel || null }),
  agent_defaults: ({ agentDefaults }) => ({ agentDefaults: agentDefaults ?? {} }),
  scorer_defaults: ({ scorerDefaults }) => ({ scorerDefaults: scorerDefaults ?? {} }),
  scoring_default_model: ({ scoringDefaultModel }) => ({ scoringDefaultModel: scoringDefaultModel || null }),
  integrations: ({ integrations }) => ({ integrations: integrations ? integrations.items : null }),
  concurrency_limit: ({ concurrencyLimit }) => ({ concurrencyLimit }),
  queue_paused: ({ queuePaused }) => ({ queuePaused }),
} as const satisfies Record<string, (message: factories.Factory) => FactoryChanges>;

type Field = keyof typeof READERS;
const FIELDS = Object.keys(READERS) as Field[];

/** Reads the settings of a new factory; unset fields have defaults. */
export const readNewSettings = (message: factories.Factory): FactoryChanges =>
  Object.assign({}, ...FIELDS.map((field) => READERS[field](message)));

/** Reads exactly the masked settings. Errors: unknown_field. */
export const readMaskedSettings = (message: factories.Factory, paths: readonly string[]): FactoryChanges =>
  Object.assign({}, ...[...checkMask(paths, FIELDS)].map((field) => READERS[field](message)));
