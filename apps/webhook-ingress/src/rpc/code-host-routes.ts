import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { requireServiceCaller } from "@millwright/caller";
import { webhooks } from "@millwright/contracts";
import { allowServices, optionalTimestamp, served } from "@millwright/rpc";
import { codeHostIngressUrl, type CodeHostDelivery, type CodeHostWebhook } from "../domain/code-host-webhook.ts";
import {
  deleteCodeHostWebhook,
  findCodeHostWebhook,
  putCodeHostWebhook,
  removeCodeHost,
  rotateCodeHostSecret,
  type CodeHostWebhooksDeps,
} from "../usecases/code-host-webhooks.ts";
import {
  batchGetCodeHostDeliveries,
  getCodeHostDelivery,
  listCodeHostDeliveries,
  walkCodeHostDeliveries,
  type DeliveryBatch,
  type ReadCodeHostDeliveriesDeps,
} from "../usecases/read-code-host-deliveries.ts";

/** Services that may read deliveries and settings in their own name. */
export const codeHostAllowList = allowServices(webhooks.CodeHostWebhookService, {
  batchGetCodeHostDeliveries: ["metrics"],
  getCodeHostDelivery: ["factories", "metrics"],
  getCodeHostWebhook: ["metrics"],
  walkCodeHostDeliveries: ["metrics"],
});

export type CodeHostRoutesDeps = CodeHostWebhooksDeps &
  ReadCodeHostDeliveriesDeps & {
    /** Origin of ingress URLs. */
    webhookBase: string;
  };

/** Registers the RPCs of code-host webhooks and their log. */
export function codeHostRoutes(router: ConnectRouter, deps: CodeHostRoutesDeps): void {
  const message = (webhook: CodeHostWebhook) => webhookMessage(webhook, deps.webhookBase);
  router.service(webhooks.CodeHostWebhookService, {
    getCodeHostWebhook: served(async (ref: webhooks.GetCodeHostWebhookRequest, caller) => ({
      webhook: message(await findCodeHostWebhook(deps, caller, ref)),
    })),
    putCodeHostWebhook: served(
      async ({ provider, botLogin, enabled, ...ref }: webhooks.PutCodeHostWebhookRequest, caller) => {
        const { webhook, secret = "" } = await putCodeHostWebhook(deps, caller, ref, { provider, botLogin, enabled });
        return { webhook: message(webhook), secret };
      },
    ),
    rotateCodeHostSecret: served(async ({ secret: supplied, ...ref }: webhooks.RotateCodeHostSecretRequest, caller) => {
      const { webhook, secret = "" } = await rotateCodeHostSecret(deps, caller, ref, supplied);
      return { webhook: message(webhook), secret };
    }),
    deleteCodeHostWebhook: served(async (ref: webhooks.DeleteCodeHostWebhookRequest, caller) => {
      await deleteCodeHostWebhook(deps, caller, ref);
      return {};
    }),
    removeCodeHost: served(async (ref: webhooks.RemoveCodeHostRequest, caller) => {
      await removeCodeHost(deps, caller, ref);
      return {};
    }),
    listCodeHostDeliveries: served(
      async ({ pageSize, pageToken, ...ref }: webhooks.ListCodeHostDeliveriesRequest, caller) => {
        const { deliveries, nextPageToken } = await listCodeHostDeliveries(deps, caller, ref, {
          size: pageSize,
          token: pageToken,
        });
        return { deliveries: deliveries.map(deliveryMessage), nextPageToken };
      },
    ),
    getCodeHostDelivery: served(async (ref: webhooks.GetCodeHostDeliveryRequest, caller) =>
      storedMessage(await getCodeHostDelivery(deps, caller, ref)),
    ),
    batchGetCodeHostDeliveries: served(async ({ deliveryUids }: webhooks.BatchGetCodeHostDeliveriesRequest, caller) => {
      requireServiceCaller(caller);
      const { deliveries, omittedUids } = await batchGetCodeHostDeliveries(deps, deliveryUids);
      return { deliveries: deliveries.map(storedMessage), omittedUids: [...omittedUids] };
    }),
    walkCodeHostDeliveries: served(async ({ pageSize, pageToken }: webhooks.WalkCodeHostDeliveriesRequest, caller) => {
      requireServiceCaller(caller);
      const { deliveries, nextPageToken } = await walkCodeHostDeliveries(deps, { size: pageSize, token: pageToken });
      return { deliveries: deliveries.map(deliveryMessage), nextPageToken };
    }),
  });
}

const webhookMessage = (
  { createdAt, updatedAt, lastDeliveryAt, ...webhook }: CodeHostWebhook,
  base: string,
): MessageInitShape<typeof webhooks.CodeHostWebhookSchema> => ({
  ...webhook,
  ingressUrl: codeHostIngressUrl(base, webhook.codeHostUid),
  createdAt: timestampFromDate(createdAt),
  updatedAt: timestampFromDate(updatedAt),
  lastDeliveryAt: optionalTimestamp(lastDeliveryAt),
});

const storedMessage = ({
  delivery,
  body,
  headers,
  botLogin,
}: DeliveryBatch["deliveries"][number]): MessageInitShape<typeof webhooks.GetCodeHostDeliveryResponseSchema> => ({
  delivery: deliveryMessage(delivery),
  headers: { ...headers },
  botLogin,
  body: body && new Uint8Array(body),
});

const deliveryMessage = ({
  deliveryId = "",
  sizeBytes,
  receivedAt,
  ...delivery
}: CodeHostDelivery): MessageInitShape<typeof webhooks.CodeHostDeliverySchema> => ({
  ...delivery,
  deliveryId,
  sizeBytes: BigInt(sizeBytes),
  receivedAt: timestampFromDate(receivedAt),
});
