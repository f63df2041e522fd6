import type { Transport } from "@connectrpc/connect";
import type { Database } from "@millwright/database";
import { Cursors } from "@millwright/paging";
import type { ServiceOptions } from "@millwright/service";
import { deriveKeys, type MasterKeys } from "@millwright/vault";
import { identityClient } from "./clients/identity-client.ts";
import { modelsClient } from "./clients/models-client.ts";
import { orchestratorClient } from "./clients/orchestrator-client.ts";
import { resultStore } from "./store/result-store.ts";
import { scorerStore } from "./store/scorer-store.ts";
import { selfImprovementStore } from "./store/self-improvement-store.ts";
import { enqueueCancel } from "./usecases/cancel-judge-run.ts";
import type { ScopeDeps } from "./usecases/scope.ts";

export type ScorersOptions = Pick<ServiceOptions, "clock" | "signer"> &
  ScopeDeps & {
    readonly masterKeys: MasterKeys;
    readonly database: Database;
    readonly identity: Transport;
    readonly orchestrator: Transport;
  };

/** Composes scorers, reads of their results, and scorers defined in files. */
export function composeScorers({
  database,
  clock,
  signer,
  masterKeys,
  factories,
  identity,
  orchestrator,
}: ScorersOptions) {
  const [agents, models] = [identityClient(identity, signer), modelsClient(orchestrator, signer)];
  return {
    routes: {
      scorers: scorerStore(database, enqueueCancel),
      results: resultStore(database),
      selfImprovements: selfImprovementStore(database),
      factories,
      agents,
      models,
      runs: orchestratorClient(orchestrator, signer),
      cursors: new Cursors(...deriveKeys(masterKeys, "scoring page tokens")),
      clock,
    },
    definitions: { database, agents, models, clock },
  };
}
