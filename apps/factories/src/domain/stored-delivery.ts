/** An entry of a webhook's log, as its owner tells of it. */
export type StoredDelivery = {
  readonly uid: string;
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly webhookUid: string;
  readonly webhookName: string;
  readonly deliveryId: string;
  readonly sizeBytes: number;
  readonly receivedAt: Date;
  /** The bytes as received; of accepted ones only. */
  readonly payload: Uint8Array | undefined;
};
