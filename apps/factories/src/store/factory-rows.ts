import { as, type AgentUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";
import type { Factory, FactorySettings, Management, Repository } from "../domain/factory.ts";
import { Prisma, type Factory as FactoryRow } from "../gen/prisma/client.ts";
import { json } from "./prisma-client.ts";

export const toFactory = (row: FactoryRow): Factory => ({
  uid: as<FactoryUid>(row.uid),
  teamUid: as<TeamUid>(row.teamUid),
  name: row.name,
  alias: row.alias,
  description: row.description,
  codeForge: row.codeForge,
  codeForges: row.codeForges,
  repositories: row.repositories as Repository[],
  credentialStrategy: row.credentialStrategy,
  defaultEnvironment: row.defaultEnvironment,
  defaultModel: row.defaultModel,
  agentDefaults: row.agentDefaults as JsonObject,
  scorerDefaults: row.scorerDefaults as JsonObject,
  scoringDefaultModel: row.scoringDefaultModel,
  integrations: row.integrations as JsonObject[] | null,
  selfImprovement: row.selfImprovement as JsonObject | null,
  concurrencyLimit: row.concurrencyLimit,
  queuePaused: row.queuePaused,
  creatorUid: row.creatorUid,
  management: row.management as Management,
  currentVersion: row.currentVersion,
  foremanAgentUid: row.foremanAgentUid === null ? null : as<AgentUid>(row.foremanAgentUid),
  version: row.version,
  createdAt: row.createdAt,
  updatedAt: row.updatedAt,
});

export const toSettingsData = (settings: FactorySettings) => ({
  name: settings.name,
  alias: settings.alias,
  description: settings.description,
  codeForge: settings.codeForge,
  codeForges: settings.codeForges,
  repositories: json(settings.repositories),
  credentialStrategy: settings.credentialStrategy,
  defaultEnvironment: settings.defaultEnvironment,
  defaultModel: settings.defaultModel,
  agentDefaults: json(settings.agentDefaults),
  scorerDefaults: json(settings.scorerDefaults),
  scoringDefaultModel: settings.scoringDefaultModel,
  integrations: settings.integrations === null ? Prisma.DbNull : json(settings.integrations),
  selfImprovement: settings.selfImprovement === null ? Prisma.DbNull : json(settings.selfImprovement),
});

/** Returns the columns that a change of a factory writes. */
export const toChangeData = (factory: Factory) => ({
  ...toSettingsData(factory),
  concurrencyLimit: factory.concurrencyLimit,
  queuePaused: factory.queuePaused,
  management: factory.management,
  currentVersion: factory.currentVersion,
  version: factory.version,
  updatedAt: factory.updatedAt,
});
