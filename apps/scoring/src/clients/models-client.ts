import type { Transport } from "@connectrpc/connect";
import type { Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** The models of the platform, as scorers need them. */
export function modelsClient(transport: Transport, signer: CallerSigner) {
  const catalog = clientFor(orchestrator.CatalogService, transport, { signer });
  return {
    /** Ids of the models that a team can name. */
    async modelIds(caller: Caller, teamUid: string): Promise<ReadonlySet<string>> {
      const { models } = await catalog.listModels({ teamUid }, call(caller));
      return new Set(models.map(({ id }) => id));
    },
  };
}
