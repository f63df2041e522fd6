import type { ConnectRouter } from "@connectrpc/connect";
import { definitions } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { allowServices, callerOf } from "@millwright/rpc";
import { originOf } from "../events/origin.ts";
import { activateDefinition, type ActivateDefinitionDeps } from "../usecases/activate-definition.ts";
import { discardDefinition, stageDefinition, type StageDefinitionDeps } from "../usecases/project-definition.ts";

export type DefinitionRoutesDeps = StageDefinitionDeps & ActivateDefinitionDeps;

/** Only factories, the owner of definitions, can call these methods in its own name. */
export const definitionAllowList = allowServices(definitions.DefinitionOwnerService, {
  stageDefinition: ["factories"],
  discardDefinition: ["factories"],
  activateDefinition: ["factories"],
});

/** Registers DefinitionOwnerService for the scorers and suites that files define. */
export function definitionRoutes(router: ConnectRouter, deps: DefinitionRoutesDeps): void {
  router.service(definitions.DefinitionOwnerService, {
    stageDefinition: ({ factoryUid, teamUid, version, definition, dryRun }) =>
      stageDefinition(deps, {
        factoryUid: uuid(factoryUid),
        teamUid: uuid(teamUid),
        version: Number(version),
        definition: definition ?? {},
        isDryRun: dryRun,
      }),
    async discardDefinition({ factoryUid, version }) {
      await discardDefinition(deps, uuid(factoryUid), Number(version));
      return {};
    },
    async activateDefinition({ factoryUid, version }, context) {
      const target = { factoryUid: uuid(factoryUid), version: Number(version) };
      return { activeVersion: BigInt(await activateDefinition(deps, originOf(callerOf(context)), target)) };
    },
  });
}

function uuid(text: string): string {
  if (isUuid(text)) return text.toLowerCase();
  throw invalidArgument("definition_malformed", `A uid must be a UUID (got ${JSON.stringify(text)}).`);
}
