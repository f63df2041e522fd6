import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import { identity, MODEL_SECRETS } from "@millwright/contracts";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import { DEFAULT_QUEUE_SETTINGS, type QueueSettings } from "../domain/queue-settings.ts";
import type { ResolveAgentRequest, ResolvedAgent } from "../domain/resolved-agent.ts";

/** The part of the identity service's API that resolving runs needs. */
export type IdentityClient = {
  /** Errors: agent_not_found. */
  resolveAgent(caller: Caller, request: ResolveAgentRequest): Promise<ResolvedAgent>;
  /** Returns values by name; an optional secret may be absent. Errors: secret_not_found, naming the missing ones. */
  resolveSecrets(
    caller: Caller,
    teamUid: string,
    names: readonly string[],
    optionalNames?: readonly string[],
  ): Promise<Readonly<Record<string, string>>>;
};

const SOURCES: readonly string[] = ["agent", "factory", "team"];

const queueSettings = (settings: identity.QueueSettings | undefined): QueueSettings =>
  settings
    ? {
        concurrencyLimit: settings.concurrencyLimit,
        isPaused: settings.paused,
        weight: settings.weight || 1,
        priority: settings.priority,
        version: Number(settings.version),
      }
    : DEFAULT_QUEUE_SETTINGS;

/** Returns the agent in a response of the identity service. */
export const resolvedAgentOf = (response: identity.ResolveAgentResponse): ResolvedAgent => ({
  agentUid: response.agentUid || undefined,
  agentName: response.agentUid ? response.agentName : undefined,
  agentType: (response.agentUid && response.agentType) || undefined,
  factoryUid: response.factoryUid || undefined,
  definitionVersion: Number(response.definitionVersion),
  layers: response.layers
    .filter(({ source }) => SOURCES.includes(source))
    .map(({ source, config }) => ({ source: source as "agent" | "factory" | "team", config: config ?? {} })),
  siblingAgents: response.siblingAgents,
  queueSettings: {
    team: queueSettings(response.teamQueue),
    agent: queueSettings(response.agentQueue),
    factory: DEFAULT_QUEUE_SETTINGS,
  },
  teamSecrets: response.teamSecrets,
});

/**
 * Returns the caller to send upstream. A service may sign for users and for itself only, so a request from another
 * service is forwarded in this service's own name, for the same principal.
 */
const forwarded = (caller: Caller, service: string): Caller =>
  caller.principal.type === "service" ? serviceCaller(service, caller.requestId, caller.actsFor, caller.teams) : caller;

export function identityClient(transport: Transport, signer: CallerSigner): IdentityClient {
  const client = clientFor(identity.IdentityService, transport, { signer });
  return {
    async resolveAgent(caller, request) {
      return resolvedAgentOf(
        await client.resolveAgent(
          { ...request, askedSecrets: [...MODEL_SECRETS] },
          call(forwarded(caller, signer.service)),
        ),
      );
    },
    async resolveSecrets(caller, teamUid, names, optionalNames = []) {
      if (names.length + optionalNames.length === 0) return {};
      return (
        await client.resolveSecrets({ teamUid, names: [...names], optionalNames: [...optionalNames] }, call(caller))
      ).values;
    },
  };
}
