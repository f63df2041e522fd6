import type { JsonObject } from "./agent-config.ts";
import type { ScopeSettings } from "./queue-settings.ts";

/** An agent as returned by the identity service; without an agent, only the configuration of its team. */
export type ResolvedAgent = {
  readonly agentUid?: string;
  readonly agentName?: string;
  /** FOREMAN, TRIAGE, SPEC, IMPLEMENT, REVIEW, VERIFY or CUSTOM. */
  readonly agentType?: string;
  readonly factoryUid?: string;
  /** 0: the factory has no definition. */
  readonly definitionVersion: number;
  readonly layers: readonly { readonly source: "agent" | "factory" | "team"; readonly config: JsonObject }[];
  readonly siblingAgents: readonly string[];
  readonly queueSettings: ScopeSettings;
  /** The names in MODEL_SECRETS of which the team has a managed secret. */
  readonly teamSecrets: readonly string[];
};

/** A query for an agent: by uid, or by name within a factory. Without either, only the team's level is returned. */
export type ResolveAgentRequest = {
  readonly teamUid: string;
  readonly agentUid?: string;
  readonly factoryUid?: string;
  readonly agentName?: string;
};

/** An agent that the gateway has resolved for the current request. */
export type KnownAgent = { readonly query: ResolveAgentRequest; readonly agent: ResolvedAgent };

/** Returns the known agent if it is the response to the query. */
export const knownAgentFor = (query: ResolveAgentRequest, known: KnownAgent | undefined): ResolvedAgent | undefined =>
  known &&
  known.query.teamUid === query.teamUid &&
  known.query.agentUid === query.agentUid &&
  known.query.factoryUid === query.factoryUid &&
  known.query.agentName === query.agentName
    ? known.agent
    : undefined;
