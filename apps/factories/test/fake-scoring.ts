import type { ConnectRouter } from "@connectrpc/connect";
import { definitions } from "@millwright/contracts";
import { allowServices } from "@millwright/rpc";
import { FakeOwner } from "./fake-owner.ts";

/** The scoring service as the owner of the scorers of definitions. */
export class FakeScoring {
  static readonly allow = allowServices(definitions.DefinitionOwnerService, {
    stageDefinition: ["factories"],
    discardDefinition: ["factories"],
    activateDefinition: ["factories"],
  });
  readonly owner = new FakeOwner("nothing");

  routes(router: ConnectRouter): void {
    router.service(definitions.DefinitionOwnerService, this.owner.service());
  }
}
