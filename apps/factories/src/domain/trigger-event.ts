import type { JsonObject } from "@millwright/json";

/** The event of a delivery that a user has an automation evaluate again. */
export const REPLAYED = "replayed";

/** An event that automations of a factory may have triggers for. Plain JSON, because it is the payload of work rows. */
export type TriggerEvent = {
  /** Of a delivery: the delivery's uid. */
  readonly uid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** As in triggers; `manual` for requests of users. */
  readonly provider: string;
  readonly event: string;
  /** The stored delivery; null: none. */
  readonly deliveryUid: string | null;
  /** Data about the event; never a payload. */
  readonly subject: JsonObject;
  readonly requestId: string;
  /** RFC 3339. */
  readonly occurredAt: string;
};
