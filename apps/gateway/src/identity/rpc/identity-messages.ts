import type { MessageInitShape } from "@bufbuild/protobuf";
import type { identity } from "@millwright/contracts";
import type { Agent } from "../domain/agent-identity.ts";
import type { Credential } from "../store/credential-store.ts";
import { grantsOf, isPlatformAdmin } from "../usecases/authenticate.ts";
import type { Profile } from "../store/profile-store.ts";
import type { ResolvedAgent } from "../usecases/resolve-agent.ts";

export const authenticatedMessage = (
  credential: Credential,
): MessageInitShape<typeof identity.AuthenticateKeyResponseSchema> => {
  const { keyUid, user, agent, teamUid } = credential;
  return {
    keyUid,
    principalType: agent ? "agent" : user ? "user" : "worker",
    principalUid: agent?.uid ?? user?.uid ?? keyUid,
    displayName: agent?.name ?? user?.displayName ?? "",
    email: user?.email ?? "",
    platformAdmin: isPlatformAdmin(credential),
    teams: grantsOf(credential).map((grant) => ({ teamUid: grant.teamUid, verbs: [...grant.verbs] })),
    workerTeamUid: agent || user ? "" : (teamUid ?? ""),
  };
};

export const resolvedMessage = (
  resolved: ResolvedAgent,
): MessageInitShape<typeof identity.ResolveAgentResponseSchema> => ({
  agentUid: resolved.agent?.uid ?? "",
  agentName: resolved.agent?.name ?? "",
  agentType: resolved.agent?.agentType ?? "",
  factoryUid: resolved.agent?.factoryUid ?? "",
  definitionVersion: BigInt(resolved.definitionVersion),
  layers: resolved.layers.map((layer) => ({ ...layer, version: BigInt(layer.version) })),
  siblingAgents: resolved.siblings,
  teamConcurrencyLimit: resolved.team.concurrencyLimit,
  agentConcurrencyLimit: resolved.agent?.concurrencyLimit ?? 0,
  teamQueue: teamQueue(resolved.team),
  agentQueue: resolved.agent && agentQueue(resolved.agent),
  teamSecrets: [...resolved.teamSecrets],
});

type QueueSettings = MessageInitShape<typeof identity.QueueSettingsSchema>;

const teamQueue = ({ concurrencyLimit, queuePaused, queueWeight, version }: ResolvedAgent["team"]): QueueSettings => ({
  concurrencyLimit,
  paused: queuePaused,
  weight: queueWeight,
  version: BigInt(version),
});

const agentQueue = ({ concurrencyLimit, queuePaused, queuePriority, version }: Agent): QueueSettings => ({
  concurrencyLimit,
  paused: queuePaused,
  weight: 1,
  priority: queuePriority,
  version: BigInt(version),
});

export const profileMessage = ({
  type,
  uid,
  displayName,
  email,
}: Profile): MessageInitShape<typeof identity.ProfileSchema> => ({
  type,
  uid,
  displayName,
  email,
});
