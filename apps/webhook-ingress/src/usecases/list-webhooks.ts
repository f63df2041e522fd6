import type { Caller } from "@millwright/caller";
import type { Webhook } from "../domain/webhook.ts";
import type { WebhookStore } from "../store/webhook-store.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";

export type ListWebhooksDeps = Pick<ScopeDeps, "factories"> & {
  webhooks: Pick<WebhookStore, "list">;
};

/** Lists a factory's webhooks, oldest first. Errors: factory_not_found · not_authorized. */
export async function listWebhooks(deps: ListWebhooksDeps, caller: Caller, factoryUid: string): Promise<Webhook[]> {
  const factory = await findFactory(deps, caller, factoryUid);
  return deps.webhooks.list(factory.uid);
}
