import { timestampDate } from "@bufbuild/protobuf/wkt";
import type { Transport } from "@connectrpc/connect";
import { serviceCaller } from "@millwright/caller";
import type { CodeHostDelivery } from "@millwright/code-host-events";
import { webhooks } from "@millwright/contracts";
import { isDomainError } from "@millwright/errors";
import { newUid } from "@millwright/ids";
import { call, clientFor, type CallerSigner } from "@millwright/rpc";
import type { StoredCodeHostDelivery, StoredDelivery } from "../domain/stored-delivery.ts";

/** Returns a client for stored deliveries, as this service; use cases check the team. */
export function webhooksClient(transport: Transport, signer: CallerSigner) {
  const client = clientFor(webhooks.WebhookService, transport, { signer });
  const codeHosts = clientFor(webhooks.CodeHostWebhookService, transport, { signer });
  const self = () => call(serviceCaller(signer.service, newUid()));
  /** Returns a delivery; undefined if it is absent or pruned. Only accepted deliveries have content. */
  const codeHostEntry = async (uid: string): Promise<StoredCodeHostDelivery | undefined> => {
    const found = await orAbsent(codeHosts.getCodeHostDelivery({ deliveryUid: uid }, self()));
    if (!found?.delivery) return undefined;
    const { teamUid, codeHostUid, provider, deliveryId, sizeBytes, receivedAt } = found.delivery;
    return {
      uid,
      teamUid,
      codeHostUid,
      provider,
      deliveryId,
      sizeBytes: Number(sizeBytes),
      receivedAt: receivedAt ? timestampDate(receivedAt) : new Date(0),
      content: found.body && { provider, headers: found.headers, body: found.body, botLogin: found.botLogin },
    };
  };
  return {
    /** Returns a delivery's content; undefined if it is absent or pruned. */
    async codeHostDelivery(uid: string): Promise<CodeHostDelivery | undefined> {
      return (await codeHostEntry(uid))?.content;
    },

    codeHostEntry,

    /** Returns a delivery; undefined if it is absent or pruned. */
    async delivery(uid: string): Promise<StoredDelivery | undefined> {
      const found = await orAbsent(client.getDelivery({ deliveryUid: uid }, self()));
      if (!found?.delivery) return undefined;
      const { factoryUid, teamUid, webhookUid, deliveryId, receivedAt, sizeBytes } = found.delivery;
      return {
        uid,
        factoryUid,
        teamUid,
        webhookUid,
        deliveryId,
        webhookName: found.webhookName,
        sizeBytes: Number(sizeBytes),
        receivedAt: receivedAt ? timestampDate(receivedAt) : new Date(0),
        payload: found.payload,
      };
    },
  };
}

const orAbsent = <T>(response: Promise<T>): Promise<T | undefined> =>
  response.catch((error: unknown) => {
    if (isDomainError(error) && error.kind === "not_found") return undefined;
    throw error;
  });
