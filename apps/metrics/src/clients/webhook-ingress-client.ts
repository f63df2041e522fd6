import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import { webhooks } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { AcceptedDelivery } from "../usecases/record-delivery.ts";

/** Small enough that a page is recorded within seconds. */
const WALK_PAGE = 50;

/** Stored deliveries of code hosts, read in this service's own name. */
export function webhookIngressClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(webhooks.CodeHostWebhookService, transport, { signer });
  return {
    /** Returns an accepted delivery; undefined if there is none, or it is no longer stored. */
    async find(uid: string): Promise<AcceptedDelivery | undefined> {
      const caller = serviceCaller(signer.service, newUid());
      const found = await client.getCodeHostDelivery({ deliveryUid: uid }, call(caller)).catch((error: unknown) => {
        if (isDomainError(error) && error.kind === "not_found") return undefined;
        throw error;
      });
      if (!found?.delivery?.receivedAt || !found.body) return undefined;
      const { body, headers, botLogin } = found;
      const { teamUid, provider, receivedAt } = found.delivery;
      return { teamUid, provider, headers, body, botLogin, receivedAt: timestampDate(receivedAt) };
    },

    /** Lists a page of all accepted deliveries that are still stored, oldest first. */
    async walk(pageToken: string): Promise<{ deliveries: { uid: string; event: string }[]; nextPageToken: string }> {
      const caller = serviceCaller(signer.service, newUid());
      return client.walkCodeHostDeliveries({ pageSize: WALK_PAGE, pageToken }, call(caller));
    },
  };
}
