import type { Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { identity } from "@millwright/contracts";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** Returns a client that checks the agents that schedules name. */
export function identityClient(transport: Transport, signer: CallerSigner) {
  const agents = clientFor(identity.IdentityService, transport, { signer });
  return {
    /** Errors: agent_not_found. */
    async requireAgent(caller: Caller, teamUid: string, agentUid: string): Promise<void> {
      await agents.resolveAgent({ teamUid, agentUid }, call(caller));
    },
  };
}
