import type { JsonObject } from "@bufbuild/protobuf";
import { actorOf, type Caller } from "@millwright/caller";
import type { NewEvent } from "@millwright/events";
import type { Webhook } from "../domain/webhook.ts";

export type Origin = Pick<NewEvent, "actor" | "requestId" | "cause">;

/** Returns the actor and request of a change, for events. */
export function originOf(caller: Caller): Origin {
  const { type, uid } = actorOf(caller);
  return { actor: { type, uid }, requestId: caller.requestId };
}

/** Builds `millwright.webhook.created|updated|deleted.v1`: the state after the change, without the secret. */
export const buildWebhookEvent = (
  verb: "created" | "updated" | "deleted",
  webhook: Webhook,
  origin: Origin,
  members: JsonObject = {},
): NewEvent => ({
  type: `millwright.webhook.${verb}.v1`,
  entity: "webhook",
  entityUid: webhook.uid,
  entityVersion: webhook.version,
  teamUid: webhook.teamUid,
  payload: {
    factory_uid: webhook.factoryUid,
    name: webhook.name,
    auth_mode: webhook.authMode,
    enabled: webhook.enabled,
    ...members,
  },
  ...origin,
});

export const webhookEvent = (
  verb: "created" | "updated" | "deleted",
  webhook: Webhook,
  caller: Caller,
  members?: JsonObject,
): NewEvent => buildWebhookEvent(verb, webhook, originOf(caller), members);
