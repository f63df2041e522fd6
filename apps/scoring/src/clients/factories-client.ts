import type { Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { factories } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { FactoryView } from "../usecases/scope.ts";

/** Returns the client of the factories service for scorers and benchmarks. */
export function factoriesClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(factories.FactoryService, transport, { signer });
  return {
    /** Returns a factory. Errors: factory_not_found (absent or not visible to the caller). */
    async get(caller: Caller, uid: string): Promise<FactoryView> {
      const { factory } = await client.getFactory({ uid }, call(caller));
      if (!factory) throw notFound("factory");
      const { teamUid, management, scorerDefaults = {}, scoringDefaultModel, repositories } = factory;
      return {
        uid: factory.uid,
        teamUid,
        management,
        scorerDefaults,
        repositories,
        scoringDefaultModel,
      };
    },
  };
}
