import type { WEBHOOK_AUTH_MODES } from "@millwright/definition";
import type { FactoryUid, TeamUid, Uid } from "@millwright/ids";
import type { SignatureScheme } from "./signature-schemes.ts";

export type WebhookUid = Uid<"webhook">;

export type AuthMode = (typeof WEBHOOK_AUTH_MODES)[number];

/** How senders prove themselves. Never changes after creation. */
export type WebhookAuth = {
  readonly authMode: AuthMode;
  /** With `signature` only. */
  readonly signatureScheme: SignatureScheme | undefined;
  /** Of `generic_hmac_sha256`. */
  readonly signatureHeader: string | undefined;
  readonly signaturePrefix: string | undefined;
  /** Of a managed secret of the team; absent: a secret of its own. */
  readonly secretName: string | undefined;
};

/** What may be changed later. */
export type WebhookSettings = {
  readonly name: string;
  readonly deliveryIdHeader: string | undefined;
  readonly enabled: boolean;
};

export type Management = "live" | "files";

/** A factory's address for senders (spec §2 "Webhook"). */
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

/** The address that senders use; of a url_token webhook with its secret, or with the placeholder for it (webhooks §1). */
export const ingressUrl = (
  base: string,
  { uid, authMode }: Pick<Webhook, "uid" | "authMode">,
  token = "{token}",
): string => `${base}/webhooks/w/${uid}${authMode === "url_token" ? `/${token}` : ""}`;
