import {
  CODE_FORGES,
  CREDENTIAL_STRATEGIES,
  isAlias,
  isFactoryName,
  REPOSITORY_NAME,
  REPOSITORY_OWNER,
} from "@millwright/definition";
import { DomainError, invalidArgument } from "@millwright/errors";
import type { AgentUid, FactoryUid, TeamUid } from "@millwright/ids";
import type { JsonObject } from "@millwright/json";

export type Repository = { owner: string; repo: string; code_forge?: string };

/** Where a factory is edited: through the API, or in files that an apply brings in. */
export type Management = "live" | "service_files" | "external_files";

/** The settings that a team may change on a live factory; null means none. */
export type FactorySettings = {
  name: string;
  alias: string | null;
  description: string | null;
  /** The primary forge; NONE without repositories. */
  codeForge: string;
  codeForges: string[];
  repositories: Repository[];
  credentialStrategy: string;
  defaultEnvironment: string | null;
  defaultModel: string | null;
  /** Public AgentDefaults. */
  agentDefaults: JsonObject;
  /** Public ScorerDefaults, sparse. */
  scorerDefaults: JsonObject;
  scoringDefaultModel: string | null;
  /** Public Integration records; null: nothing declared yet. */
  integrations: JsonObject[] | null;
  /** Public SelfImprovement, which only files define. */
  selfImprovement: JsonObject | null;
};

/** The queue settings, which files cannot define, so they can be changed on every factory. */
export type FactoryQueue = {
  /** Concurrent executions; 0 = the platform's default. */
  concurrencyLimit: number;
  /** Queued runs are not started. */
  queuePaused: boolean;
};

export type FactoryChanges = Partial<FactorySettings & FactoryQueue>;

/** A team's container of agents, runs and tasks. */
export type Factory = FactorySettings &
  FactoryQueue & {
    uid: FactoryUid;
    teamUid: TeamUid;
    creatorUid: string;
    management: Management;
    /** The active definition version; 0 = none. */
    currentVersion: number;
    foremanAgentUid: AgentUid | null;
    version: number;
    createdAt: Date;
    updatedAt: Date;
  };

export const NO_AGENT_DEFAULTS: JsonObject = Object.freeze({
  default_runner_uid: "",
  mcp_servers: {},
  secrets: [],
  worker_host: "",
});

const CONCURRENCY_MAX = 100_000;

/** Errors: invalid_factory. */
export function newQueue({ concurrencyLimit = 0, queuePaused = false }: Partial<FactoryQueue>): FactoryQueue {
  if (!Number.isInteger(concurrencyLimit) || concurrencyLimit < 0 || concurrencyLimit > CONCURRENCY_MAX)
    throw invalid("concurrency_limit", `must be an integer between 0 and ${CONCURRENCY_MAX} (got ${concurrencyLimit})`);
  return { concurrencyLimit, queuePaused };
}

/** Returns the settings of a new factory; the rest are defaults. Errors: as `checkSettings`. */
export function newSettings(given: Partial<FactorySettings>): FactorySettings {
  return checkSettings(
    withForges({
      name: "",
      alias: null,
      description: null,
      codeForge: "",
      codeForges: [],
      repositories: [],
      credentialStrategy: "EXECUTOR",
      defaultEnvironment: null,
      defaultModel: null,
      agentDefaults: {},
      scorerDefaults: {},
      scoringDefaultModel: null,
      integrations: null,
      selfImprovement: null,
      ...given,
    }),
  );
}

/**
 * Returns the factory with exactly the given settings replaced.
 *
 * Errors: as `checkSettings`, and managed_by_files (invalid_argument) for settings that files define.
 */
export function changeSettings(factory: Factory, changes: FactoryChanges, now: Date): Factory {
  if (Object.keys(changes).length === 0) return factory;
  const { concurrencyLimit = factory.concurrencyLimit, queuePaused = factory.queuePaused, ...given } = changes;
  const queue = newQueue({ concurrencyLimit, queuePaused });
  if (Object.keys(given).length === 0) return { ...factory, ...queue, version: factory.version + 1, updatedAt: now };
  if (factory.management !== "live") {
    throw invalidArgument("managed_by_files", "Files define this factory. Change the files and apply them.", {
      management: factory.management,
    });
  }
  const forges = given.repositories && !given.codeForge && !given.codeForges ? { codeForge: "", codeForges: [] } : {};
  const settings = checkSettings(withForges({ ...factory, ...forges, ...given }));
  return { ...factory, ...settings, ...queue, version: factory.version + 1, updatedAt: now };
}

/** Derives settings from others: forges from repositories, the fixed members of agent defaults. */
const withForges = (settings: FactorySettings): FactorySettings => {
  const named =
    settings.codeForges.length > 0
      ? settings.codeForges
      : settings.repositories.map(({ code_forge }) => code_forge ?? (settings.codeForge || "GITHUB"));
  const primary = settings.codeForge || (named[0] ?? "NONE");
  return {
    ...settings,
    codeForge: primary,
    codeForges: [...new Set(named.length > 0 ? named : [primary])],
    agentDefaults: { ...NO_AGENT_DEFAULTS, ...settings.agentDefaults },
  };
};

const FORGES: readonly string[] = [...CODE_FORGES, "NONE"];

/** Errors: invalid_factory naming the field. */
function checkSettings<T extends FactorySettings>(settings: T): T {
  if (!isFactoryName(settings.name)) throw invalid("name", "must have 1 to 100 characters");
  if (settings.alias !== null && !isAlias(settings.alias))
    throw invalid("alias", "must have at most 60 characters: letters, digits, spaces and . _ -");
  if (!CREDENTIAL_STRATEGIES.some((known) => known === settings.credentialStrategy))
    throw invalid("credential_strategy", "must be EXECUTOR or CREATOR");
  if (![settings.codeForge, ...settings.codeForges].every((forge) => FORGES.includes(forge)))
    throw invalid("code_forge", `must be one of ${FORGES.join(", ")}`);
  const pairs = settings.repositories.map(({ owner, repo }) => `${owner}/${repo}`.toLowerCase());
  const isNamed = settings.repositories.every(
    ({ owner, repo, code_forge: forge }) =>
      REPOSITORY_OWNER.test(owner) &&
      REPOSITORY_NAME.test(repo) &&
      (forge === undefined || CODE_FORGES.some((known) => known === forge)),
  );
  if (!isNamed || new Set(pairs).size < pairs.length)
    throw invalid("repositories", "must be distinct pairs of owner and repo, with a known code_forge");
  return settings;
}

const invalid = (field: string, rule: string): DomainError =>
  invalidArgument("invalid_factory", `${field} ${rule}.`, { field });

export const aliasTaken = (cause?: unknown): DomainError =>
  new DomainError({
    kind: "conflict",
    reason: "alias_taken",
    message: "Another factory of the team has this alias; choose another one.",
    cause,
  });
