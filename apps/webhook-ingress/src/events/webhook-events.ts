import type { JsonObject } from "@bufbuild/protobuf";
import { actorOf, type Caller } from "@millwright/caller";
import type { NewEvent } from "@millwright/events";
import type { Webhook } from "../domain/webhook.ts";

export type Origin = Pick<NewEvent, "actor" | "requestId" | "cause">;

/** Who brought something about, as events say it. */
export function originOf(caller: Caller): Origin {
  const { type, uid } = actorOf(caller);
  return { actor: { type, uid }, requestId: caller.requestId };
}

/** `millwright.webhook.created|updated|deleted.v1`: the state after the fact, never a secret. `more` says what changed. */
export const webhookFact = (
  happened: "created" | "updated" | "deleted",
  webhook: Webhook,
  origin: Origin,
  more: JsonObject = {},
): NewEvent => ({
  type: `millwright.webhook.${happened}.v1`,
  entity: "webhook",
  entityUid: webhook.uid,
  entityVersion: webhook.version,
  teamUid: webhook.teamUid,
  payload: {
    factory_uid: webhook.factoryUid,
    name: webhook.name,
    auth_mode: webhook.authMode,
    enabled: webhook.enabled,
    ...more,
  },
  ...origin,
});

export const webhookEvent = (
  happened: "created" | "updated" | "deleted",
  webhook: Webhook,
  caller: Caller,
  more?: JsonObject,
): NewEvent => webhookFact(happened, webhook, originOf(caller), more);
