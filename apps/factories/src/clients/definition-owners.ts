import type { JsonObject } from "@bufbuild/protobuf";
import type { Transport } from "@connectrpc/connect";
import { serviceCaller, type Caller, type PrincipalType } from "@millwright/caller";
import { definitions } from "@millwright/contracts";
import type { Definition } from "@millwright/definition";
import { DomainError } from "@millwright/errors";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { Activation } from "../domain/apply.ts";
import type { Factory } from "../domain/factory.ts";
import { readPlanItem, type PlanItem } from "../domain/plan.ts";
import type { UnplacedDiagnostic } from "../domain/source.ts";

/** This service's own caller, carrying out what a principal was allowed to ask for. */
export const callerFor = (service: string, { factory, actor, requestId }: Activation): Caller =>
  serviceCaller(service, requestId, { type: actor.type as PrincipalType, uid: actor.uid }, [
    { teamUid: factory.teamUid, verbs: ["factory.view", "source.apply"] },
  ]);

/**
 * The owners of parts of a definition, each behind its transport (architecture §6). The parts of `dependents` name agents: they are activated
 * once the others serve the version.
 */
export function definitionOwners(
  transports: readonly Transport[],
  signer: CallerSigner,
  dependents: readonly Transport[] = [],
) {
  const clientOf = (transport: Transport) => clientFor(definitions.DefinitionOwnerService, transport, { signer });
  const [first, second] = [transports.map(clientOf), dependents.map(clientOf)];
  const owners = [...first, ...second];
  return {
    async stage(
      caller: Caller,
      stage: { factory: Factory; version: number; definition: Definition; isDryRun: boolean },
    ): Promise<{ diagnostics: UnplacedDiagnostic[]; plan: PlanItem[] }> {
      const self = serviceCaller(signer.service, caller.requestId, caller.principal, caller.teams);
      const request = {
        factoryUid: stage.factory.uid,
        teamUid: stage.factory.teamUid,
        version: BigInt(stage.version),
        dryRun: stage.isDryRun,
        definition: stage.definition as unknown as JsonObject,
      };
      const answers = await all(owners.map((owner) => owner.stageDefinition(request, call(self))));
      return {
        diagnostics: answers.flatMap((answer) => answer.diagnostics.map(toDiagnostic)),
        plan: answers.flatMap((answer) => answer.plan.map(readPlanItem)),
      };
    },

    async activate(activation: Activation): Promise<void> {
      const { factory, version } = activation;
      const self = callerFor(signer.service, activation);
      const request = { factoryUid: factory.uid, version: BigInt(version) };
      for (const group of [first, second]) {
        const answers = await all(group.map((owner) => owner.activateDefinition(request, call(self))));
        if (answers.every(({ activeVersion }) => activeVersion >= request.version)) continue;
        throw new DomainError({
          kind: "unavailable",
          reason: "definition_not_active",
          message: "An owner does not serve the version yet.",
        });
      }
    },

    async drop(activation: Activation): Promise<void> {
      const request = { factoryUid: activation.factory.uid, version: BigInt(activation.version) };
      await all(owners.map((owner) => owner.dropDefinition(request, call(callerFor(signer.service, activation)))));
    },
  };
}

/** Waits for every answer, also when one is a failure: nothing may still be under way afterwards. */
async function all<T>(answers: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(answers);
  return Promise.all(answers);
}

const toDiagnostic = ({ path, keys, code, message, severity }: definitions.Diagnostic): UnplacedDiagnostic => ({
  path,
  keys,
  code,
  message,
  severity: severity === "warning" ? "warning" : "error",
});
