import type { JsonObject } from "@millwright/json";

/** The event of a delivery that somebody has an automation look at again. */
export const REPLAYED = "replayed";

/** Something that happened and that automations of a factory may listen to. Plain JSON: it travels in rows of work. */
export type TriggerEvent = {
  /** Of a delivery its own uid. */
  readonly uid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  /** As triggers name it; `manual` for what people ask for. */
  readonly provider: string;
  readonly event: string;
  /** The stored delivery that it is about; null: none. */
  readonly deliveryUid: string | null;
  /** What is known of it; never a payload. */
  readonly subject: JsonObject;
  readonly requestId: string;
  /** RFC 3339. */
  readonly occurredAt: string;
};
