import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { identity } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** Returns a client that reads the gateway's managed secrets. */
export function identityClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(identity.IdentityService, transport, { signer });
  return {
    /** Returns the value and revision of a secret; undefined if the team has no such secret. */
    async secret({
      teamUid,
      name,
    }: {
      teamUid: string;
      name: string;
    }): Promise<{ value: string; revision: string } | undefined> {
      const { values, revisions } = await client.resolveSecrets(
        { teamUid, optionalNames: [name] },
        call(serviceCaller(signer.service, newUid())),
      );
      const value = values[name];
      return value === undefined ? undefined : { value, revision: revisions[name] ?? "" };
    },
  };
}
