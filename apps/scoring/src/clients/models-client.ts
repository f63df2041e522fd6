import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import { as, newUid, type TeamUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** The platform's default model at the time of use. */
const AUTO_MODEL = "auto";

/** The models of the platform, as scorers need them. */
export function modelsClient(transport: Transport, signer: CallerSigner) {
  const catalog = clientFor(orchestrator.CatalogService, transport, { signer });
  const modelIds = async (caller: Caller, teamUid: string): Promise<ReadonlySet<string>> => {
    const { models } = await catalog.listModels({ teamUid }, call(caller));
    return new Set([AUTO_MODEL, ...models.map(({ id }) => id)]);
  };
  return {
    /** Ids of the models that a team can name, and `auto`. */
    modelIds,
    /** The same, asked in this service's own name. */
    modelIdsOf: (teamUid: string) =>
      modelIds(
        serviceCaller(signer.service, newUid(), undefined, [{ teamUid: as<TeamUid>(teamUid), verbs: ["run.view"] }]),
        teamUid,
      ),
  };
}
