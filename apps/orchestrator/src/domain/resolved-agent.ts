import type { JsonObject } from "./agent-config.ts";
import type { ScopeSettings } from "./queue-settings.ts";

/** An agent as the identity service knows it; without an agent, only what its team says. */
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
  /** Those of the secrets that decide about model providers which the team has. */
  readonly teamSecrets: readonly string[];
};

/** Which agent: by uid, or by name within a factory; neither = only the team's level. */
export type AgentQuestion = {
  readonly teamUid: string;
  readonly agentUid?: string;
  readonly factoryUid?: string;
  readonly agentName?: string;
};
