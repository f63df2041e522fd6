import type { ConnectRouter } from "@connectrpc/connect";
import { requireServiceCaller } from "@millwright/caller";
import { webhooks } from "@millwright/contracts";
import { served } from "@millwright/rpc";
import { deleteWebhook, replaceWebhook, rotateSecret, type ChangeWebhookDeps } from "../usecases/change-webhook.ts";
import { createWebhook, type CreateWebhookDeps } from "../usecases/create-webhook.ts";
import { listWebhooks, type ListWebhooksDeps } from "../usecases/list-webhooks.ts";
import { getDelivery, listDeliveries, type ReadDeliveriesDeps } from "../usecases/read-deliveries.ts";
import { findWebhook } from "../usecases/scope.ts";
import { testFilter, type TestFilterDeps } from "../usecases/test-filter.ts";
import { deliveryMessage, webhookMessage } from "./messages.ts";

export type RoutesDeps = CreateWebhookDeps &
  ListWebhooksDeps &
  ChangeWebhookDeps &
  ReadDeliveriesDeps &
  TestFilterDeps & {
    /** Origin of ingress URLs. */
    webhookBase: string;
  };

/** Registers every RPC of this service with the use case that serves it. */
export function webhookRoutes(router: ConnectRouter, deps: RoutesDeps): void {
  const message = (webhook: Parameters<typeof webhookMessage>[0], token?: string) =>
    webhookMessage(webhook, deps.webhookBase, token);
  router.service(webhooks.WebhookService, {
    listWebhooks: served(async ({ factoryUid }: webhooks.ListWebhooksRequest, caller) => ({
      webhooks: (await listWebhooks(deps, caller, factoryUid)).map((webhook) => message(webhook)),
    })),
    getWebhook: served(async (ref: webhooks.GetWebhookRequest, caller) => ({
      webhook: message(await findWebhook(deps, caller, ref)),
    })),
    createWebhook: served(
      async ({ webhook: input, secret: supplied, idempotencyKey }: webhooks.CreateWebhookRequest, caller) => {
        const {
          factoryUid = "",
          name = "",
          authMode = "",
          signatureScheme = "",
          signatureHeader = "",
          signaturePrefix = "",
          secretName = "",
          deliveryIdHeader = "",
          enabled = false,
        } = input ?? {};
        const { webhook, secret } = await createWebhook(deps, caller, {
          factoryUid,
          name,
          authMode,
          signatureScheme,
          signatureHeader,
          signaturePrefix,
          secretName,
          deliveryIdHeader,
          enabled,
          secret: supplied,
          idempotencyKey,
        });
        return { webhook: message(webhook, secret), secret: secret ?? "" };
      },
    ),
    replaceWebhook: served(async ({ factoryUid, webhookUid, ...input }: webhooks.ReplaceWebhookRequest, caller) => ({
      webhook: message(await replaceWebhook(deps, caller, { factoryUid, webhookUid }, input)),
    })),
    rotateSecret: served(async ({ secret: supplied, ...ref }: webhooks.RotateSecretRequest, caller) => {
      const { webhook, secret } = await rotateSecret(deps, caller, ref, supplied);
      return { webhook: message(webhook, secret), secret: secret ?? "" };
    }),
    deleteWebhook: served(async (ref: webhooks.DeleteWebhookRequest, caller) => {
      await deleteWebhook(deps, caller, ref);
      return {};
    }),
    listDeliveries: served(async ({ pageSize, pageToken, ...ref }: webhooks.ListDeliveriesRequest, caller) => {
      const { deliveries, nextPageToken } = await listDeliveries(deps, caller, ref, {
        size: pageSize,
        token: pageToken,
      });
      return { deliveries: deliveries.map(deliveryMessage), nextPageToken };
    }),
    getDelivery: served(async (ref: webhooks.GetDeliveryRequest, caller) => {
      const { delivery, payload, webhookName } = await getDelivery(deps, caller, ref);
      return { delivery: deliveryMessage(delivery), payload: payload && new Uint8Array(payload), webhookName };
    }),
    testFilter: served(
      async ({ factoryUid, webhookUids, payloadFilter, deliveryUid, payload }: webhooks.TestFilterRequest, caller) => {
        const tested = await testFilter(deps, caller, { factoryUid, webhookUids, payloadFilter, deliveryUid, payload });
        return { ...tested, failedPaths: [...tested.failedPaths] };
      },
    ),
    updateManagedSecret: served(
      async ({ teamUid, name, revision, value }: webhooks.UpdateManagedSecretRequest, caller) => {
        requireServiceCaller(caller);
        await deps.teamSecrets.push({ teamUid, name }, { value, revision });
        return {};
      },
    ),
  });
}
