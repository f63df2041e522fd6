import { requireVerb, type Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import type { Clock } from "@millwright/clock";
import { idempotentRequest } from "@millwright/idempotency";
import { as, isUuid, newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import { newQueue, newSettings, type Factory, type FactoryChanges } from "../domain/factory.ts";
import { factoryCreated } from "../events/factory-events.ts";
import { originOf } from "../events/origin.ts";
import type { FactoryStore } from "../store/factory-store.ts";

export type CreateFactoryDeps = {
  factories: Pick<FactoryStore, "create">;
  clock: Clock;
};

export type CreateFactoryInput = { teamUid: string; settings: FactoryChanges; idempotencyKey: string };

/**
 * Creates a live factory without agents.
 *
 * Errors: team_not_found · not_authorized · invalid_factory · alias_taken (conflict) · idempotency_mismatch (conflict).
 */
export async function createFactory(
  deps: CreateFactoryDeps,
  caller: Caller,
  input: CreateFactoryInput,
): Promise<Factory> {
  if (!isUuid(input.teamUid)) throw notFound("team");
  requireVerb(caller, input.teamUid, "factory.manage", "team");
  const now = deps.clock.now();
  const { concurrencyLimit, queuePaused, ...settings } = input.settings;
  const factory: Factory = {
    ...newSettings(settings),
    ...newQueue(omitUndefined({ concurrencyLimit, queuePaused })),
    uid: newUid<FactoryUid>(),
    teamUid: as<TeamUid>(input.teamUid),
    creatorUid: originOf(caller).actor.uid,
    management: "live",
    currentVersion: 0,
    foremanAgentUid: null,
    version: 1,
    createdAt: now,
    updatedAt: now,
  };
  const request = idempotentRequest(caller.principal.uid, "create-factory", input.idempotencyKey, {
    teamUid: input.teamUid,
    settings: input.settings,
  });
  return deps.factories.create(factory, factoryCreated(factory, originOf(caller)), request);
}
