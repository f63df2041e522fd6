import { SIGNATURE_SCHEMES, WEBHOOK_AUTH_MODES } from "@millwright/definition";
import { invalidArgument } from "@millwright/errors";
import type { Webhook } from "./webhook.ts";

/** A webhook as its file defines it, in the normalised form of libs/definition. */
export type DefinedWebhook = Pick<Webhook, "name" | "authMode" | "signatureScheme" | "deliveryIdHeader" | "enabled"> & {
  readonly secretName: string;
};

/** Returns the webhooks of a normalised definition, which its sender has validated. Errors: definition_malformed. */
export function readDefinedWebhooks(definition: Readonly<Record<string, unknown>>): DefinedWebhook[] {
  const parts = definition["webhooks"] ?? []; // absent in versions from before this service
  if (!Array.isArray(parts)) throw malformed();
  return parts.map((part: unknown) => {
    const {
      name,
      auth_mode: mode,
      signature_scheme: scheme,
      secret_name: secretName,
      delivery_id_header: header,
      enabled,
    } = (part ?? {}) as Record<string, unknown>;
    const authMode = WEBHOOK_AUTH_MODES.find((known) => known === mode);
    const signatureScheme = SIGNATURE_SCHEMES.find((known) => known === scheme);
    if (
      typeof name !== "string" ||
      typeof secretName !== "string" ||
      authMode === undefined ||
      (authMode === "signature") !== (signatureScheme !== undefined)
    )
      throw malformed();
    return {
      name,
      authMode,
      signatureScheme,
      secretName,
      deliveryIdHeader: typeof header === "string" ? header : undefined,
      enabled: enabled !== false,
    };
  });
}

/** Returns the webhooks that automations of a definition select, by uid, with the path of each reference. */
export function selectedWebhooks(
  definition: Readonly<Record<string, unknown>>,
): { automation: string; keys: string[]; uid: string }[] {
  const automations = (definition["automations"] ?? []) as {
    name: string;
    triggers?: { provider: string; filter?: { webhook_ids?: { in?: string[] } } }[];
  }[];
  return automations.flatMap(({ name, triggers = [] }) =>
    triggers.flatMap(({ provider, filter }, index) =>
      provider === "webhook"
        ? (filter?.webhook_ids?.in ?? []).map((uid) => ({
            automation: name,
            keys: ["triggers", String(index), "filter", "webhook_ids"],
            uid: uid.toLowerCase(),
          }))
        : [],
    ),
  );
}

const malformed = (): Error => invalidArgument("definition_malformed", "The definition's webhooks are malformed.");
