import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError, invalidArgument, notFound } from "@millwright/errors";
import { readSettings } from "../domain/new-webhook.ts";
import { checkSecret, generateSecret } from "../domain/secret.ts";
import type { Webhook } from "../domain/webhook.ts";
import { webhookEvent } from "../events/webhook-events.ts";
import type { WebhookChange } from "../store/webhook-store.ts";
import { managedByFiles } from "./managed-by-files.ts";
import { findFactory, findWebhook, type ScopeDeps, type WebhookRef } from "./scope.ts";

export type ChangeWebhookDeps = ScopeDeps & {
  webhooks: {
    update(uid: string, change: (webhook: Webhook) => WebhookChange, now: Date): Promise<Webhook | undefined>;
  };
  clock: Clock;
};

export type AskedSettings = { name: string; deliveryIdHeader: string; enabled: boolean };

/**
 * Replaces name, delivery-ID header and whether it is enabled. Of what files define only the last can be changed, and
 * nothing where the files are elsewhere (webhooks §10).
 *
 * Errors: webhook_not_found · not_authorized · invalid_webhook · secret_missing (conflict) · managed_by_files (conflict).
 */
export async function replaceWebhook(
  deps: ChangeWebhookDeps,
  caller: Caller,
  ref: WebhookRef,
  asked: AskedSettings,
): Promise<Webhook> {
  const found = await findWebhook(deps, caller, ref);
  const settings = readSettings(asked, found);
  const isExternal =
    found.management === "files" && (await findFactory(deps, caller, found.factoryUid)).management !== "service_files";
  return change(deps, found, (webhook) => {
    const isOnlyToggled = settings.name === webhook.name && settings.deliveryIdHeader === webhook.deliveryIdHeader;
    if (webhook.management === "files" && (isExternal || !isOnlyToggled)) throw managedByFiles();
    if (settings.enabled && !webhook.isSecretSet)
      throw new DomainError({
        kind: "conflict",
        reason: "secret_missing",
        message: "The webhook waits for its secret; give it with rotate.",
      });
    const next = { ...webhook, ...settings };
    return { next, event: webhookEvent("updated", next, caller) };
  });
}

/**
 * Gives a webhook another secret of its own. The new one counts at once, the old one no longer; one that waited for its
 * first is enabled by it.
 *
 * Errors: webhook_not_found · not_authorized · invalid_secret · secret_managed (conflict) · managed_by_files (conflict).
 */
export async function rotateSecret(
  deps: ChangeWebhookDeps,
  caller: Caller,
  ref: WebhookRef,
  supplied: string,
): Promise<{ webhook: Webhook; secret: string | undefined }> {
  const found = await findWebhook(deps, caller, ref);
  const generated = supplied === "" ? generateSecret(found) : undefined;
  const secret = generated ?? supplied;
  const webhook = await change(deps, found, (present) => {
    if (present.management === "files") throw managedByFiles("Files define this webhook; replace its managed secret.");
    if (present.secretName !== undefined)
      throw new DomainError({
        kind: "conflict",
        reason: "secret_managed",
        message: `The webhook uses the managed secret ${present.secretName}; replace that.`,
      });
    if (supplied !== "" && present.authMode !== "signature")
      throw invalidArgument("invalid_secret", "The secret of such a webhook is generated.");
    checkSecret(present, secret);
    const next = { ...present, isSecretSet: true, enabled: present.enabled || !present.isSecretSet };
    return { next, secret, event: webhookEvent("updated", next, caller, { secret_changed: true }) };
  });
  return { webhook, secret: generated };
}

/** Errors: webhook_not_found · not_authorized · managed_by_files (conflict). */
export async function deleteWebhook(deps: ChangeWebhookDeps, caller: Caller, ref: WebhookRef): Promise<void> {
  const found = await findWebhook(deps, caller, ref);
  await change(deps, found, (webhook) => {
    if (webhook.management === "files") throw managedByFiles();
    return { next: webhook, isDeleted: true, event: webhookEvent("deleted", webhook, caller) };
  });
}

async function change(
  deps: ChangeWebhookDeps,
  { uid }: Webhook,
  make: (webhook: Webhook) => WebhookChange,
): Promise<Webhook> {
  const now = deps.clock.now();
  const changed = await deps.webhooks.update(
    uid,
    (webhook) => make({ ...webhook, version: webhook.version + 1, updatedAt: now }),
    now,
  );
  if (!changed) throw notFound("webhook"); // deleted meanwhile
  return changed;
}
