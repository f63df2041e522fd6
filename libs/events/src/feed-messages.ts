import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampDate, timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { events } from "@millwright/contracts";
import type { StoredEvent } from "./event.ts";

export function toMessage(event: StoredEvent): MessageInitShape<typeof events.EventSchema> {
  return {
    uid: event.uid,
    position: BigInt(event.position),
    type: event.type,
    entity: event.entity,
    entityUid: event.entityUid,
    entityVersion: BigInt(event.entityVersion),
    teamUid: event.teamUid ?? "",
    actorType: event.actor.type,
    actorUid: event.actor.uid,
    requestId: event.requestId,
    cause: event.cause ?? "",
    traceparent: event.traceparent ?? "",
    occurredAt: timestampFromDate(event.occurredAt),
    payload: event.payload,
  };
}

export function toEvent(message: events.Event): StoredEvent {
  return {
    uid: message.uid,
    position: Number(message.position),
    type: message.type,
    entity: message.entity,
    entityUid: message.entityUid,
    entityVersion: Number(message.entityVersion),
    actor: { type: message.actorType, uid: message.actorUid },
    requestId: message.requestId,
    occurredAt: message.occurredAt ? timestampDate(message.occurredAt) : new Date(0),
    payload: message.payload ?? {},
    teamUid: message.teamUid || undefined,
    cause: message.cause || undefined,
    traceparent: message.traceparent || undefined,
  };
}
