import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { identity } from "@millwright/contracts";
import { DomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/**
 * Returns a function that authenticates a worker key with the identity service. Errors of that function: key_invalid
 * (unauthenticated); unavailable.
 */
export function workerKeysClient(
  transport: Transport,
  signer: CallerSigner,
): (key: string) => Promise<{ keyUid: string; teamUid?: string }> {
  const client = clientFor(identity.IdentityService, transport, { signer });
  return async (key) => {
    const response = await client.authenticateKey({ key }, call(serviceCaller("orchestrator", newUid())));
    if (response.principalType !== "worker") {
      throw new DomainError({
        kind: "unauthenticated",
        reason: "key_invalid",
        message: "The key is not a worker key. Use a key of kind worker.",
      });
    }
    return { keyUid: response.keyUid, teamUid: response.workerTeamUid || undefined };
  };
}
