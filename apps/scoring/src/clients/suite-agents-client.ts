import type { Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { identity } from "@millwright/contracts";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { SuiteAgent } from "../usecases/suite-references.ts";

/** Agents, as suites and launches need them. */
export function suiteAgentsClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(identity.IdentityService, transport, { signer });
  return {
    /** Errors: agent_not_found (absent, disabled or not visible). */
    async get(caller: Caller, teamUid: string, agentUid: string): Promise<SuiteAgent> {
      return toSuiteAgent(await client.resolveAgent({ teamUid, agentUid }, call(caller)));
    },
    /** Finds an agent of a factory by name. Errors: agent_not_found. */
    async findByName(caller: Caller, teamUid: string, factoryUid: string, agentName: string): Promise<SuiteAgent> {
      return toSuiteAgent(await client.resolveAgent({ teamUid, factoryUid, agentName }, call(caller)));
    },
  };
}

const toSuiteAgent = ({
  agentUid,
  agentName,
  factoryUid,
  siblingAgents,
  layers,
}: identity.ResolveAgentResponse): SuiteAgent => ({
  uid: agentUid,
  name: agentName,
  factoryUid,
  siblings: siblingAgents,
  layers: layers.map(({ source, uid, version, config = {} }) => ({ source, uid, version: Number(version), config })),
});
