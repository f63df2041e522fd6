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

/// Returns this service as the caller, on behalf of the principal that requested an apply.
export const callerFor = (service: string, { factory, actor, requestId }: Activation): Caller =>
  serviceCaller(service, requestId, { type: actor.type as PrincipalType, uid: actor.uid }, [
    { teamUid: factory.teamUid, verbs: ["factory.view", "source.apply"] },
  ]);

/**
 * Returns a client of all owners of parts of a definition. The parts of `dependents` name agents, so they are
 * activated after the other owners.
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
      const responses = await settleAll(owners.map((owner) => owner.stageDefinition(request, call(self))));
      return {
        diagnostics: responses.flatMap((response) => response.diagnostics.map(toDiagnostic)),
        plan: responses.flatMap((response) => response.plan.map(readPlanItem)),
      };
    },

    async activate(activation: Activation): Promise<void> {
      const { factory, version } = activation;
      const self = callerFor(signer.service, activation);
      const request = { factoryUid: factory.uid, version: BigInt(version) };
      for (const group of [first, second]) {
        const responses = await settleAll(group.map((owner) => owner.activateDefinition(request, call(self))));
        if (responses.every(({ activeVersion }) => activeVersion >= request.version)) continue;
        throw new DomainError({
          kind: "unavailable",
          reason: "definition_not_active",
          message: "A service has not activated the version yet. Retry in a few seconds.",
        });
      }
    },

    async drop(activation: Activation): Promise<void> {
      const request = { factoryUid: activation.factory.uid, version: BigInt(activation.version) };
      await settleAll(
        owners.map((owner) => owner.discardDefinition(request, call(callerFor(signer.service, activation)))),
      );
    },
  };
}

/** Waits until every call has ended, also if one fails, so that none is in flight afterwards. */
async function settleAll<T>(calls: readonly Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(calls);
  return Promise.all(calls);
}

const toDiagnostic = ({ path, keys, code, message, severity }: definitions.Diagnostic): UnplacedDiagnostic => ({
  path,
  keys,
  code,
  message,
  severity: severity === "warning" ? "warning" : "error",
});
