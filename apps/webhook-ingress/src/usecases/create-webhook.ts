import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { WEBHOOKS_MAX } from "@millwright/definition";
import { DomainError, invalidArgument } from "@millwright/errors";
import type { NewEvent } from "@millwright/events";
import { idempotentRequest, type IdempotentRequest } from "@millwright/idempotency";
import { as, newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import { readAuth, readSettings, type AskedAuth } from "../domain/new-webhook.ts";
import { checkSecret, generateSecret } from "../domain/secret.ts";
import type { Webhook, WebhookAuth, WebhookUid } from "../domain/webhook.ts";
import type { Made } from "../store/webhook-store.ts";
import { webhookEvent } from "../events/webhook-events.ts";
import { managedByFiles } from "./managed-by-files.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";
import type { TeamSecrets } from "./team-secrets.ts";

export type CreateWebhookDeps = ScopeDeps & {
  webhooks: {
    create(
      webhook: Webhook,
      secret: string | undefined,
      answer: string | undefined,
      event: NewEvent,
      request: IdempotentRequest | undefined,
      most: number,
      now: Date,
    ): Promise<Made | undefined>;
  };
  teamSecrets: TeamSecrets;
  clock: Clock;
};

export type NewWebhook = AskedAuth & {
  factoryUid: string;
  name: string;
  deliveryIdHeader: string;
  enabled: boolean;
  secret: string;
  idempotencyKey: string;
};

/**
 * Makes a webhook. Its secret is generated (and answered this once), supplied, or a managed one of the team; a provider that
 * issues its secret only when it has the address gets a webhook that is disabled until then (webhooks §3).
 *
 * Errors: factory_not_found · not_authorized · managed_by_files · invalid_webhook · invalid_secret · secret_not_found ·
 * too_many_webhooks (conflict) · idempotency_mismatch (conflict).
 */
export async function createWebhook(
  deps: CreateWebhookDeps,
  caller: Caller,
  asked: NewWebhook,
): Promise<{ webhook: Webhook; secret: string | undefined }> {
  const factory = await findFactory(deps, caller, asked.factoryUid);
  if (factory.management === "external_files") throw managedByFiles();
  const auth = readAuth(asked);
  const settings = readSettings(asked, auth);
  const { own, generated } = await secretFor(deps, factory.teamUid, auth, asked.secret);
  const now = deps.clock.now();
  const isSecretSet = own !== undefined || auth.secretName !== undefined;
  const webhook: Webhook = {
    ...auth,
    ...settings,
    uid: newUid<WebhookUid>(),
    teamUid: as<TeamUid>(factory.teamUid),
    factoryUid: as<FactoryUid>(factory.uid),
    enabled: settings.enabled && isSecretSet,
    isSecretSet,
    management: "live",
    version: 1,
    createdAt: now,
    updatedAt: now,
    lastDeliveryAt: undefined,
  };
  const { idempotencyKey, ...body } = asked;
  const request = idempotentRequest(caller.principal.uid, "create-webhook", idempotencyKey, body);
  const made = await deps.webhooks.create(
    webhook,
    own,
    generated,
    webhookEvent("created", webhook, caller),
    request,
    WEBHOOKS_MAX,
    now,
  );
  if (!made)
    throw new DomainError({
      kind: "conflict",
      reason: "too_many_webhooks",
      message: `A factory has at most ${WEBHOOKS_MAX} webhooks.`,
    });
  const createdAt = new Date(made.at);
  return {
    webhook: { ...webhook, uid: as<WebhookUid>(made.uid), createdAt, updatedAt: createdAt },
    secret: made.answer,
  };
}

async function secretFor(
  deps: Pick<CreateWebhookDeps, "teamSecrets">,
  teamUid: string,
  auth: WebhookAuth,
  supplied: string,
): Promise<{ own?: string; generated?: string }> {
  if (auth.secretName !== undefined) {
    if (supplied !== "")
      throw invalidArgument("invalid_secret", "Send a secret, or the name of a managed one; not both.");
    checkSecret(auth, await deps.teamSecrets.follow({ teamUid, name: auth.secretName }));
    return {};
  }
  if (supplied !== "") {
    if (auth.authMode !== "signature")
      throw invalidArgument(
        "invalid_secret",
        "The secret of such a webhook is generated; name a managed secret to bring your own.",
      );
    checkSecret(auth, supplied);
    return { own: supplied };
  }
  const generated = generateSecret(auth);
  return generated === undefined ? {} : { own: generated, generated };
}
