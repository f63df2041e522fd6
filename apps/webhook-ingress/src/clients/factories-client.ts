import type { Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { factories } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** Returns a client that reads the factories of webhooks. */
export function factoriesClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(factories.FactoryService, transport, { signer });
  return {
    /** Errors: factory_not_found (absent or not visible to the caller). */
    async get(
      caller: Caller,
      uid: string,
    ): Promise<{ uid: string; teamUid: string; management: "live" | "service_files" | "external_files" }> {
      const { factory } = await client.getFactory({ uid }, call(caller));
      if (!factory) throw notFound("factory");
      return { uid: factory.uid, teamUid: factory.teamUid, management: factory.management as "live" };
    },
  };
}
