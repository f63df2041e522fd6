import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { as, newUid, type TeamUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** Model id of the platform's default model at the time of use. */
const AUTO_MODEL = "auto";

/** Returns the client for the platform's models, which scorers need. */
export function modelsClient(transport: Transport, signer: CallerSigner) {
  const catalog = clientFor(orchestrator.CatalogService, transport, { signer });
  const modelIds = async (caller: Caller, teamUid: string): Promise<ReadonlySet<string>> => {
    const { models } = await catalog.listModels({ teamUid }, call(caller));
    return new Set([AUTO_MODEL, ...models.map(({ id }) => id)]);
  };
  return {
    /** Returns the ids of the models that a team can name, and `auto`. */
    modelIds,
    /** Returns the same ids, requested in the name of this service. */
    modelIdsOf: (teamUid: string) =>
      modelIds(
        serviceCaller(signer.service, newUid(), undefined, [{ teamUid: as<TeamUid>(teamUid), verbs: ["run.view"] }]),
        teamUid,
      ),
  };
}
