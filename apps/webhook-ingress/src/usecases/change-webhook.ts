import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { DomainError, invalidArgument, notFound } from "@millwright/errors";
import { readSettings } from "../domain/new-webhook.ts";
import { checkSecret, generateSecret } from "../domain/secret.ts";
import type { Webhook } from "../domain/webhook.ts";
import { webhookEvent } from "../events/webhook-events.ts";
import type { WebhookChange, WebhookStore } from "../store/webhook-store.ts";
import { managedByFiles } from "./managed-by-files.ts";
import { findFactory, findWebhook, type ScopeDeps, type WebhookRef } from "./scope.ts";

export type ChangeWebhookDeps = ScopeDeps & {
  webhooks: Pick<WebhookStore, "update">;
  clock: Clock;
};

export type SettingsRequest = { name: string; deliveryIdHeader: string; enabled: boolean };

/**
 * Replaces name, delivery-ID header and `enabled`. Of a webhook that a file defines only `enabled` can be changed, and
 * nothing if the files are outside the platform.
 *
 * Errors: webhook_not_found · not_authorized · invalid_webhook · secret_missing (conflict) · managed_by_files
 * (conflict).
 */
export async function replaceWebhook(
  deps: ChangeWebhookDeps,
  caller: Caller,
  ref: WebhookRef,
  input: SettingsRequest,
): Promise<Webhook> {
  const found = await findWebhook(deps, caller, ref);
  const settings = readSettings(input, found);
  const isExternal =
    found.management === "files" && (await findFactory(deps, caller, found.factoryUid)).management !== "service_files";
  return change(deps, found, (webhook) => {
    const isOnlyToggled = settings.name === webhook.name && settings.deliveryIdHeader === webhook.deliveryIdHeader;
    if (webhook.management === "files" && (isExternal || !isOnlyToggled)) throw managedByFiles();
    if (settings.enabled && !webhook.isSecretSet)
      throw new DomainError({
        kind: "conflict",
        reason: "secret_missing",
        message: "The webhook has no secret yet. Set the provider's secret with rotate, then enable the webhook.",
      });
    const next = { ...webhook, ...settings };
    return { next, event: webhookEvent("updated", next, caller) };
  });
}

/**
 * Replaces a webhook's own secret. The new one applies at once and the old one is rejected; a webhook that had none is
 * enabled.
 *
 * Errors: webhook_not_found · not_authorized · invalid_secret · secret_managed (conflict) · managed_by_files
 * (conflict).
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
  const webhook = await change(deps, found, (current) => {
    if (current.management === "files")
      throw managedByFiles("Files define this webhook. Replace its managed secret instead.");
    if (current.secretName !== undefined)
      throw new DomainError({
        kind: "conflict",
        reason: "secret_managed",
        message: `The webhook uses the managed secret ${current.secretName}; replace that secret instead.`,
      });
    if (supplied !== "" && current.authMode !== "signature")
      throw invalidArgument("invalid_secret", `The secret of a ${current.authMode} webhook is generated; omit secret.`);
    checkSecret(current, secret);
    const next = { ...current, isSecretSet: true, enabled: current.enabled || !current.isSecretSet };
    return { next, secret, event: webhookEvent("updated", next, caller, { secret_changed: true }) };
  });
  return { webhook, secret: generated };
}

/** Deletes a webhook. Errors: webhook_not_found · not_authorized · managed_by_files (conflict). */
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
  build: (webhook: Webhook) => WebhookChange,
): Promise<Webhook> {
  const now = deps.clock.now();
  const changed = await deps.webhooks.update(
    uid,
    (webhook) => build({ ...webhook, version: webhook.version + 1, updatedAt: now }),
    now,
  );
  if (!changed) throw notFound("webhook"); // deleted concurrently
  return changed;
}
