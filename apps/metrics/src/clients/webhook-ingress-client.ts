import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { webhooks } from "@millwright/contracts";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { AcceptedDelivery } from "../usecases/record-deliveries.ts";

/** Small enough that a page is recorded within seconds. */
const WALK_PAGE = 50;

/** Stored deliveries of code hosts, read as this service. */
export function webhookIngressClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(webhooks.CodeHostWebhookService, transport, { signer });
  return {
    /**
     * Reads accepted deliveries in pages of the maximum response size. Those that are no longer stored are left out.
     */
    async *read(uids: readonly string[]): AsyncGenerator<AcceptedDelivery[]> {
      for (let deliveryUids = [...uids]; deliveryUids.length > 0;) {
        const caller = serviceCaller(signer.service, newUid());
        const { deliveries, omittedUids } = await client.batchGetCodeHostDeliveries({ deliveryUids }, call(caller));
        yield deliveries.flatMap((found) => toAccepted(found) ?? []);
        deliveryUids = omittedUids;
      }
    },

    /** Lists a page of all accepted deliveries that are still stored, oldest first. */
    async walk(pageToken: string): Promise<{ deliveries: { uid: string; event: string }[]; nextPageToken: string }> {
      const caller = serviceCaller(signer.service, newUid());
      return client.walkCodeHostDeliveries({ pageSize: WALK_PAGE, pageToken }, call(caller));
    },
  };
}

function toAccepted({
  delivery,
  body,
  headers,
  botLogin,
}: webhooks.GetCodeHostDeliveryResponse): AcceptedDelivery | undefined {
  if (!delivery?.receivedAt || !body) return undefined;
  const { teamUid, provider, receivedAt } = delivery;
  return { teamUid, provider, headers, body, botLogin, receivedAt: timestampDate(receivedAt) };
}
