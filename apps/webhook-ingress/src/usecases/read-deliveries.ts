import { requireVerb, type Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { clampPageSize, type Cursors } from "@millwright/paging";
import type { Delivery } from "../domain/delivery.ts";
import type { DeliveryStore } from "../store/delivery-store.ts";
import { findWebhook, type ScopeDeps, type WebhookRef } from "./scope.ts";

export type StoredDelivery = {
  readonly delivery: Delivery;
  readonly payload: Uint8Array | undefined;
  /** Also of a deleted webhook. */
  readonly webhookName: string;
};

export type ReadDeliveriesDeps = Pick<ScopeDeps, "webhooks"> & {
  deliveries: Pick<DeliveryStore, "list" | "find">;
  cursors: Cursors;
};

/** Lists a webhook's deliveries, newest first. Errors: webhook_not_found · not_authorized · invalid_cursor. */
export async function listDeliveries(
  deps: ReadDeliveriesDeps,
  caller: Caller,
  ref: WebhookRef,
  page: { size: number; token: string },
): Promise<{ deliveries: Delivery[]; nextPageToken: string }> {
  const webhook = await findWebhook(deps, caller, ref);
  const bind = { webhook: webhook.uid };
  const [at, uid] = (page.token === "" ? [] : deps.cursors.open("deliveries", bind, page.token)) as string[];
  const limit = clampPageSize(page.size, { default: 50, max: 100 });
  const rows = await deps.deliveries.list(
    webhook.uid,
    at === undefined ? undefined : { at: new Date(at), uid: uid ?? "" },
    limit + 1,
  );
  const deliveries = rows.slice(0, limit);
  const last = deliveries.at(-1);
  return {
    deliveries,
    nextPageToken:
      rows.length > limit && last
        ? deps.cursors.seal("deliveries", bind, [last.receivedAt.toISOString(), last.uid])
        : "",
  };
}

/**
 * Returns a delivery, with its payload if it was accepted. Services may read any.
 *
 * Errors: delivery_not_found (also of another webhook or factory) · not_authorized.
 */
export async function getDelivery(
  deps: Pick<ReadDeliveriesDeps, "deliveries" | "webhooks">,
  caller: Caller,
  ref: WebhookRef & { deliveryUid: string },
): Promise<StoredDelivery> {
  const found = isUuid(ref.deliveryUid) ? await deps.deliveries.find(ref.deliveryUid) : undefined;
  if (!found) throw notFound("delivery");
  const { delivery } = found;
  const isOfOtherWebhook =
    (ref.webhookUid !== "" && ref.webhookUid.toLowerCase() !== delivery.webhookUid) ||
    (ref.factoryUid !== "" && ref.factoryUid.toLowerCase() !== delivery.factoryUid);
  if (isOfOtherWebhook) throw notFound("delivery");
  if (caller.principal.type === "service") return found;
  requireVerb(caller, delivery.teamUid, "webhook.manage", "delivery");
  if (!(await deps.webhooks.find(delivery.webhookUid))) throw notFound("delivery"); // its webhook was deleted
  return found;
}
