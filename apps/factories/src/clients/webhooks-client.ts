import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { webhooks } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { StoredDelivery } from "../domain/stored-delivery.ts";

/** Stored deliveries, for this service itself: whose they are is decided here. */
export function webhooksClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(webhooks.WebhookService, transport, { signer });
  return {
    /** Undefined: there is none, or it was forgotten. */
    async delivery(uid: string): Promise<StoredDelivery | undefined> {
      const found = await client.getDelivery({ deliveryUid: uid }, call(serviceCaller(signer.service, newUid()))).catch((error: unknown) => {
        if (isDomainError(error) && error.kind === "not_found") return undefined;
        throw error;
      });
      if (!found?.delivery) return undefined;
      const { factoryUid, teamUid, webhookUid, deliveryId, receivedAt, sizeBytes } = found.delivery;
      return {
        uid, factoryUid, teamUid, webhookUid, deliveryId, webhookName: found.webhookName, sizeBytes: Number(sizeBytes),
        receivedAt: receivedAt ? timestampDate(receivedAt) : new Date(0), payload: found.payload,
      };
    },
  };
}
