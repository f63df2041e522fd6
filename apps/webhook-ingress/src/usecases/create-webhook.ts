import type { Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { WEBHOOKS_MAX } from "@millwright/definition";
import { DomainError, invalidArgument } from "@millwright/errors";
import { idempotentRequest } from "@millwright/idempotency";
import { as, newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import { readAuth, readSettings, type AuthRequest } from "../domain/new-webhook.ts";
import { checkSecret, generateSecret } from "../domain/secret.ts";
import type { Webhook, WebhookAuth, WebhookUid } from "../domain/webhook.ts";
import { webhookEvent } from "../events/webhook-events.ts";
import type { WebhookStore } from "../store/webhook-store.ts";
import { managedByFiles } from "./managed-by-files.ts";
import { findFactory, type ScopeDeps } from "./scope.ts";
import type { TeamSecrets } from "./team-secrets.ts";

export type CreateWebhookDeps = ScopeDeps & {
  webhooks: Pick<WebhookStore, "findCreated" | "create">;
  teamSecrets: TeamSecrets;
  clock: Clock;
};

export type NewWebhook = AuthRequest & {
  factoryUid: string;
  name: string;
  deliveryIdHeader: string;
  enabled: boolean;
  secret: string;
  idempotencyKey: string;
};

/**
 * Creates a webhook. Its secret is generated (and returned once), supplied, or a managed one of the team. If the
 * provider issues the secret only after it has the address, the webhook is disabled until then.
 *
 * Errors: factory_not_found · not_authorized · managed_by_files · invalid_webhook · invalid_secret · secret_not_found ·
 * too_many_webhooks (conflict) · idempotency_mismatch (conflict).
 */
export async function createWebhook(
  deps: CreateWebhookDeps,
  caller: Caller,
  input: NewWebhook,
): Promise<{ webhook: Webhook; secret: string | undefined }> {
  const factory = await findFactory(deps, caller, input.factoryUid);
  const auth = readAuth(input);
  const settings = readSettings(input, auth);
  const now = deps.clock.now();
  const { idempotencyKey, ...body } = input;
  const request = idempotentRequest(caller.principal.uid, `create-webhook ${factory.uid}`, idempotencyKey, body);
  const earlier = request && (await deps.webhooks.findCreated(request, now));
  if (!earlier && factory.management === "external_files") throw managedByFiles();
  const { own, generated } = earlier
    ? { own: input.secret || earlier.generated_secret }
    : await secretFor(deps, factory.teamUid, auth, input.secret);
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
  const created =
    earlier ??
    (await deps.webhooks.create(
      webhook,
      own,
      generated,
      webhookEvent("created", webhook, caller),
      request,
      WEBHOOKS_MAX,
      now,
    ));
  if (!created)
    throw new DomainError({
      kind: "conflict",
      reason: "too_many_webhooks",
      message: `A factory can have at most ${WEBHOOKS_MAX} webhooks; delete one first.`,
    });
  const createdAt = new Date(created.created_at);
  return {
    webhook: { ...webhook, uid: as<WebhookUid>(created.uid), createdAt, updatedAt: createdAt },
    secret: created.generated_secret,
  };
}

async function secretFor(
  deps: Pick<CreateWebhookDeps, "teamSecrets">,
  teamUid: string,
  auth: WebhookAuth,
  supplied: string,
): Promise<{ own?: string; generated?: string }> {
  if (auth.secretName !== undefined) {
    if (supplied !== "") throw invalidArgument("invalid_secret", "Send either secret or secret_name, not both.");
    checkSecret(auth, await deps.teamSecrets.track({ teamUid, name: auth.secretName }));
    return {};
  }
  if (supplied !== "") {
    if (auth.authMode !== "signature")
      throw invalidArgument(
        "invalid_secret",
        `The secret of a ${auth.authMode} webhook is generated; omit secret, or set secret_name to use your own.`,
      );
    checkSecret(auth, supplied);
    return { own: supplied };
  }
  const generated = generateSecret(auth);
  return generated === undefined ? {} : { own: generated, generated };
}
