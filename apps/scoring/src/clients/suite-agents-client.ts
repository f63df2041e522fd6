import type { Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { identity } from "@millwright/contracts";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { SuiteAgent } from "../usecases/suite-references.ts";

/** Returns the client for agents, which suites and launches need. */
export function suiteAgentsClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(identity.IdentityService, transport, { signer });
  return {
    /** Returns an agent. Errors: agent_not_found (absent, disabled or not visible). */
    async get(caller: Caller, teamUid: string, agentUid: string): Promise<SuiteAgent> {
      return toSuiteAgent(await client.resolveAgent({ teamUid, agentUid }, call(caller)));
    },
    /** Returns the agent of a factory that has the name. Errors: agent_not_found. */
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
