import type { ConnectRouter } from "@connectrpc/connect";
import { definitions } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { allowServices, callerOf } from "@millwright/rpc";
import { originOf } from "../events/webhook-events.ts";
import {
  activateDefinition,
  discardDefinition,
  stageDefinition,
  type ProjectDefinitionDeps,
} from "../usecases/project-definition.ts";

/** Only the owner of definitions may stage and activate them. */
export const definitionAllowList = allowServices(definitions.DefinitionOwnerService, {
  stageDefinition: ["factories"],
  discardDefinition: ["factories"],
  activateDefinition: ["factories"],
});

/**
 * Registers this service as the owner of webhooks that files define. Factories itself computes the plan of their
 * changes.
 */
export function definitionRoutes(router: ConnectRouter, deps: ProjectDefinitionDeps): void {
  router.service(definitions.DefinitionOwnerService, {
    async stageDefinition({ factoryUid, teamUid, version, definition, dryRun }) {
      const diagnostics = await stageDefinition(deps, {
        factoryUid: uuid(factoryUid),
        teamUid: uuid(teamUid),
        version: Number(version),
        definition: definition ?? {},
        isDryRun: dryRun,
      });
      return { diagnostics, plan: [] };
    },
    async discardDefinition({ factoryUid, version }) {
      await discardDefinition(deps, uuid(factoryUid), Number(version));
      return {};
    },
    async activateDefinition({ factoryUid, version }, context) {
      const target = { factoryUid: uuid(factoryUid), version: Number(version) };
      const origin = originOf(callerOf(context));
      return {
        activeVersion: BigInt(await deps.database.transaction((tx) => activateDefinition(tx, deps, origin, target))),
      };
    },
  });
}

function uuid(text: string): string {
  if (isUuid(text)) return text;
  throw invalidArgument("definition_malformed", `A uid must be a UUID (got "${text}").`);
}
