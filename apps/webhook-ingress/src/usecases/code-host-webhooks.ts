import { requireVerb, type Caller } from "@millwright/caller";
import type { Clock } from "@millwright/clock";
import { invalidArgument, notFound } from "@millwright/errors";
import { as, isUuid } from "@millwright/ids";
import {
  checkBotLogin,
  checkCodeHostSecret,
  generateCodeHostSecret,
  PROVIDERS,
  type CodeHostUid,
  type CodeHostWebhook,
} from "../domain/code-host-webhook.ts";
import { codeHostWebhookEvent } from "../events/code-host-events.ts";
import type { CodeHostWebhookStore } from "../store/code-host-webhook-store.ts";

export type CodeHostScopeDeps = {
  codeHostWebhooks: Pick<CodeHostWebhookStore, "find">;
};

export type CodeHostWebhooksDeps = CodeHostScopeDeps & {
  codeHostWebhooks: Pick<CodeHostWebhookStore, "change">;
  clock: Clock;
};

/** A connection and its team, which the gateway has read from the orchestrator. */
export type CodeHostRef = { readonly teamUid: string; readonly codeHostUid: string };

/**
 * Returns a connection's webhook that the caller may manage, or any of the named team's for a service.
 *
 * Errors: code_host_not_found (not the caller's team) · not_authorized · code_host_webhook_not_found.
 */
export async function findCodeHostWebhook(
  deps: CodeHostScopeDeps,
  caller: Caller,
  ref: CodeHostRef,
): Promise<CodeHostWebhook> {
  if (caller.principal.type !== "service") requireVerb(caller, ref.teamUid, "factory.manage", "code_host");
  const webhook = isUuid(ref.codeHostUid) ? await deps.codeHostWebhooks.find(ref.codeHostUid) : undefined;
  if (webhook?.teamUid !== ref.teamUid) throw notFound("code_host_webhook");
  return webhook;
}

/** Requested settings: an absent one is unchanged; a new address is enabled by default. */
export type CodeHostWebhookRequest = { provider: string; botLogin?: string | undefined; enabled?: boolean | undefined };

/**
 * Opens a connection's address and returns its secret once, or changes the settings of an open one.
 *
 * Errors: code_host_not_found (another team's, or removed) · not_authorized · invalid_code_host_webhook.
 */
export async function putCodeHostWebhook(
  deps: CodeHostWebhooksDeps,
  caller: Caller,
  ref: CodeHostRef,
  input: CodeHostWebhookRequest,
): Promise<{ webhook: CodeHostWebhook; secret: string | undefined }> {
  const { teamUid, codeHostUid } = checkRef(caller, ref);
  const provider = PROVIDERS.find((known) => known === input.provider);
  if (!provider)
    throw invalidArgument(
      "invalid_code_host_webhook",
      `provider must be one of ${PROVIDERS.join(", ")} (got "${input.provider.slice(0, 100)}").`,
      {
        field: "provider",
      },
    );
  const botLogin = input.botLogin === undefined ? undefined : checkBotLogin(input.botLogin);
  let secret: string | undefined;
  const webhook = await deps.codeHostWebhooks.change(codeHostUid, ({ open, version, isRemoved, owner }) => {
    if (isRemoved || (owner !== undefined && owner !== teamUid)) throw notFound("code_host");
    secret = open ? undefined : generateCodeHostSecret(provider);
    const now = deps.clock.now();
    const before = open ?? { botLogin: "", enabled: true, createdAt: now, lastDeliveryAt: undefined };
    const next: CodeHostWebhook = {
      ...before,
      codeHostUid,
      teamUid,
      provider,
      botLogin: botLogin ?? before.botLogin,
      enabled: input.enabled ?? before.enabled,
      version: version + 1,
      updatedAt: now,
    };
    return { next, state: "open", secret, event: codeHostWebhookEvent(open ? "updated" : "created", next, caller) };
  });
  return { webhook, secret };
}

/**
 * Replaces the secret of an address with the given one, or with a generated one. The new one applies at once and the
 * old one is rejected. Errors: as `findCodeHostWebhook`; invalid_secret.
 */
export async function rotateCodeHostSecret(
  deps: CodeHostWebhooksDeps,
  caller: Caller,
  ref: CodeHostRef,
  supplied: string,
): Promise<{ webhook: CodeHostWebhook; secret: string | undefined }> {
  const { codeHostUid, provider } = await findCodeHostWebhook(deps, caller, ref);
  const generated = supplied === "" ? generateCodeHostSecret(provider) : undefined;
  const secret = generated ?? supplied;
  checkCodeHostSecret(secret);
  const webhook = await deps.codeHostWebhooks.change(codeHostUid, ({ open }) => {
    if (!open) throw notFound("code_host_webhook"); // closed concurrently
    const next = { ...open, version: open.version + 1, updatedAt: deps.clock.now() };
    return {
      next,
      state: "open",
      secret,
      event: codeHostWebhookEvent("updated", next, caller, { secret_changed: true }),
    };
  });
  return { webhook, secret: generated };
}

/** Closes an address, so that the code host gets 404. Errors: as `findCodeHostWebhook`. */
export async function deleteCodeHostWebhook(
  deps: CodeHostWebhooksDeps,
  caller: Caller,
  ref: CodeHostRef,
): Promise<void> {
  const { codeHostUid } = await findCodeHostWebhook(deps, caller, ref);
  await deps.codeHostWebhooks.change(codeHostUid, ({ open }) => {
    if (!open) throw notFound("code_host_webhook"); // closed concurrently
    const next = { ...open, enabled: false, version: open.version + 1, updatedAt: deps.clock.now() };
    return { next, state: "closed", event: codeHostWebhookEvent("deleted", next, caller) };
  });
}

/**
 * Closes the address of a connection that is about to be removed. It can never be opened again.
 *
 * Errors: code_host_not_found (another team's) · not_authorized.
 */
export async function removeCodeHost(deps: CodeHostWebhooksDeps, caller: Caller, ref: CodeHostRef): Promise<void> {
  const { teamUid, codeHostUid } = checkRef(caller, ref);
  await deps.codeHostWebhooks.change(codeHostUid, ({ open, version, owner }) => {
    if (owner !== undefined && owner !== teamUid) throw notFound("code_host");
    const now = deps.clock.now();
    const next: CodeHostWebhook = {
      ...(open ?? {
        codeHostUid,
        teamUid,
        provider: "github",
        botLogin: "",
        createdAt: now,
        lastDeliveryAt: undefined,
      }),
      enabled: false,
      version: version + 1,
      updatedAt: now,
    };
    return { next, state: "removed", event: open && codeHostWebhookEvent("deleted", next, caller) };
  });
}

function checkRef(caller: Caller, ref: CodeHostRef): { teamUid: CodeHostWebhook["teamUid"]; codeHostUid: CodeHostUid } {
  requireVerb(caller, ref.teamUid, "factory.manage", "code_host");
  if (!isUuid(ref.codeHostUid)) throw notFound("code_host");
  return {
    teamUid: as<CodeHostWebhook["teamUid"]>(ref.teamUid),
    codeHostUid: as<CodeHostUid>(ref.codeHostUid.toLowerCase()),
  };
}
