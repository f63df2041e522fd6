import { create } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { definitions } from "@millwright/contracts";
import { invalidArgument } from "@millwright/errors";
import { isUuid, type FactoryUid, type TeamUid } from "@millwright/ids";
import { allowServices } from "@millwright/rpc";
import { activateDefinition, type ActivateDefinitionDeps } from "../usecases/activate-definition.ts";
import type { Transaction } from "../../storage/store/transaction.ts";
import { stageDefinition, type StageDefinitionDeps } from "../usecases/stage-definition.ts";

export type DefinitionRoutesDeps = StageDefinitionDeps &
  ActivateDefinitionDeps & {
    readonly transaction: Transaction;
    readonly definitions: { drop(factoryUid: FactoryUid, version: number): Promise<void> };
  };

/** Only the factories service, which owns definitions, may stage, drop and activate them. */
export const definitionAllowList = allowServices(definitions.DefinitionOwnerService, {
  stageDefinition: ["factories"],
  discardDefinition: ["factories"],
  activateDefinition: ["factories"],
});

/** Registers DefinitionOwnerService. This service owns the runners and skills of definitions. */
export function definitionRoutes(router: ConnectRouter, deps: DefinitionRoutesDeps): void {
  router.service(definitions.DefinitionOwnerService, {
    async stageDefinition({ factoryUid, teamUid, version, definition, dryRun }) {
      const staged = await stageDefinition(deps, {
        factoryUid: uuid<FactoryUid>(factoryUid, "factory_uid"),
        teamUid: uuid<TeamUid>(teamUid, "team_uid"),
        version: Number(version),
        definition: definition ?? {},
        isDryRun: dryRun,
      });
      return create(definitions.StageDefinitionResponseSchema, {
        diagnostics: staged.diagnostics.map((diagnostic) => ({ ...diagnostic, keys: [...diagnostic.keys] })),
        plan: staged.plan.map((item) => ({ ...item, changedFields: [...item.changedFields] })),
      });
    },
    async discardDefinition({ factoryUid, version }) {
      await deps.definitions.drop(uuid<FactoryUid>(factoryUid, "factory_uid"), Number(version));
      return {};
    },
    async activateDefinition({ factoryUid, version }) {
      const uid = uuid<FactoryUid>(factoryUid, "factory_uid");
      return {
        activeVersion: BigInt(await deps.transaction((tx) => activateDefinition(deps, tx, uid, Number(version)))),
      };
    },
  });
}

function uuid<T extends string>(text: string, field: string): T {
  if (isUuid(text)) return text as T;
  throw invalidArgument("definition_malformed", `${field} must be a UUID (got "${text}").`);
}
