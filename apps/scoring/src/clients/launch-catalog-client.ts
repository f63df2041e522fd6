import type { Transport } from "@connectrpc/connect";
import { isDomainError } from "@millwright/errors";
import type { Caller } from "@millwright/caller";
import { orchestrator } from "@millwright/contracts";
import type { JsonObject } from "@millwright/json";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";

/** Environments, as suites and launches need them. */
export function launchCatalogClient(transport: Transport, signer: CallerSigner) {
  const catalog = clientFor(orchestrator.CatalogService, transport, { signer });
  return {
    /** Returns the public configuration of an environment; undefined when the caller cannot see it. */
    async environment(caller: Caller, uid: string): Promise<JsonObject | undefined> {
      try {
        const { environment } = await catalog.getEnvironment({ uid }, call(caller));
        return environment?.config;
      } catch (error) {
        if (isDomainError(error) && error.kind === "not_found") return undefined;
        throw error;
      }
    },
  };
}
