import type { WEBHOOK_AUTH_MODES } from "@millwright/definition";
import type { FactoryUid, TeamUid, Uid } from "@millwright/ids";
import type { SignatureScheme } from "./signature-schemes.ts";

export type WebhookUid = Uid<"webhook">;

export type AuthMode = (typeof WEBHOOK_AUTH_MODES)[number];

/** How senders authenticate. Immutable after creation. */
export type WebhookAuth = {
  readonly authMode: AuthMode;
  /** Only with `signature`. */
  readonly signatureScheme: SignatureScheme | undefined;
  /** Only with `generic_hmac_sha256`. */
  readonly signatureHeader: string | undefined;
  readonly signaturePrefix: string | undefined;
  /** The name of the team's managed secret; absent if the webhook has its own secret. */
  readonly secretName: string | undefined;
};

/** The mutable settings. */
export type WebhookSettings = {
  readonly name: string;
  readonly deliveryIdHeader: string | undefined;
  readonly enabled: boolean;
};

export type Management = "live" | "files";

/** A factory's address for senders. */
export type Webhook = WebhookAuth &
  WebhookSettings & {
    readonly uid: WebhookUid;
    readonly teamUid: TeamUid;
    readonly factoryUid: FactoryUid;
    readonly isSecretSet: boolean;
    readonly management: Management;
    readonly version: number;
    readonly createdAt: Date;
    readonly updatedAt: Date;
    readonly lastDeliveryAt: Date | undefined;
  };

/** Returns the address for senders; of a url_token webhook with its secret, or with a placeholder. */
export const ingressUrl = (
  base: string,
  { uid, authMode }: Pick<Webhook, "uid" | "authMode">,
  token = "{token}",
): string => `${base}/webhooks/w/${uid}${authMode === "url_token" ? `/${token}` : ""}`;
