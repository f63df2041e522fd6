import { requireVerb, type Caller } from "@millwright/caller";
import { notFound } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import type { Webhook } from "../domain/webhook.ts";
import type { WebhookStore } from "../store/webhook-store.ts";

/** The parts of a factory that webhooks need. */
export type FactoryView = {
  readonly uid: string;
  readonly teamUid: string;
  readonly management: "live" | "service_files" | "external_files";
};

export type ScopeDeps = {
  webhooks: Pick<WebhookStore, "find">;
  factories: {
    /** Returns a factory that the caller may see. Errors: factory_not_found (absent or not visible). */
    get(caller: Caller, uid: string): Promise<FactoryView>;
  };
};

/**
 * Returns a factory whose webhooks the caller may manage. Errors: factory_not_found (absent, malformed or not visible)
 * · not_authorized.
 */
export async function findFactory(
  deps: Pick<ScopeDeps, "factories">,
  caller: Caller,
  uid: string,
): Promise<FactoryView> {
  if (!isUuid(uid)) throw notFound("factory");
  const factory = await deps.factories.get(caller, uid);
  requireVerb(caller, factory.teamUid, "webhook.manage", "factory");
  return factory;
}

/** A webhook by its uid, and by its factory's uid if not empty. */
export type WebhookRef = { readonly factoryUid: string; readonly webhookUid: string };

/**
 * Returns a webhook that the caller may manage.
 *
 * Errors: webhook_not_found (absent, malformed, of another factory, or not visible) · not_authorized.
 */
export async function findWebhook(
  deps: Pick<ScopeDeps, "webhooks">,
  caller: Caller,
  { factoryUid, webhookUid }: WebhookRef,
): Promise<Webhook> {
  const webhook = isUuid(webhookUid) ? await deps.webhooks.find(webhookUid) : undefined;
  if (!webhook || (factoryUid !== "" && webhook.factoryUid !== factoryUid.toLowerCase())) throw notFound("webhook");
  requireVerb(caller, webhook.teamUid, "webhook.manage", "webhook");
  return webhook;
}
