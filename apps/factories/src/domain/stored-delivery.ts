import type { CodeHostDelivery } from "@millwright/code-host-events";

/** An entry of a webhook's log, as read from the webhook ingress. */
export type StoredDelivery = {
  readonly uid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly webhookUid: string;
  readonly webhookName: string;
  readonly deliveryId: string;
  readonly sizeBytes: number;
  readonly receivedAt: Date;
  /** The bytes as received; only of accepted deliveries. */
  readonly payload: Uint8Array | undefined;
};

/** An entry of a code-host connection's log, as read from the webhook ingress. */
export type StoredCodeHostDelivery = {
  readonly uid: string;
  readonly teamUid: string;
  readonly codeHostUid: string;
  readonly provider: string;
  readonly deliveryId: string;
  readonly sizeBytes: number;
  readonly receivedAt: Date;
  /** Headers and body; only of accepted deliveries. */
  readonly content: CodeHostDelivery | undefined;
};
