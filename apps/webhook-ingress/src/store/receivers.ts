import type { Database } from "@millwright/database";
import { as, type FactoryUid, type TeamUid } from "@millwright/ids";
import type { Vault } from "@millwright/vault";
import type { SignatureScheme } from "../domain/signature-schemes.ts";
import type { AuthMode, WebhookAuth, WebhookUid } from "../domain/webhook.ts";
import { failuresOf, refusedFor } from "./rate-windows.ts";
import { secretPlace } from "./secret-places.ts";

/** A webhook as its senders meet it. */
export type Receiver = WebhookAuth & {
  readonly uid: WebhookUid;
  readonly teamUid: TeamUid;
  readonly factoryUid: FactoryUid;
  readonly deliveryIdHeader: string | undefined;
  /** Absent: nobody can be let in. */
  readonly secret: string | undefined;
  /** What this was read from; a remembered receiver is right as long as they are the same. */
  readonly version: number;
  readonly sealed: string | null;
};

/** `refusedForSeconds`: set while the sender's address has used up its failures. */
export type Met = { readonly to: Receiver; readonly refusedForSeconds: number | undefined };

const REMEMBERED_MAX = 10_000;

/** Enabled webhooks, by their uids. */
export function receivers(database: Database, vault: Vault) {
  const remembered = new Map<string, Receiver>();
  const remember = (to: Receiver): Receiver => {
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    remembered.set(to.uid, to);
    return to;
  };
  const read = (row: ReceiverRow): Receiver => {
    const known = remembered.get(row.uid);
    if (known?.version === row.version && known.sealed === row.sealed) return known; // opening a secret costs more than all else that a small delivery does
    return remember({
      uid: as<WebhookUid>(row.uid),
      teamUid: as<TeamUid>(row.team_uid),
      factoryUid: as<FactoryUid>(row.factory_uid),
      authMode: row.auth_mode,
      signatureScheme: row.signature_scheme ?? undefined,
      signatureHeader: row.signature_header ?? undefined,
      signaturePrefix: row.signature_prefix ?? undefined,
      secretName: row.secret_name ?? undefined,
      deliveryIdHeader: row.delivery_id_header ?? undefined,
      version: row.version,
      sealed: row.sealed,
      secret:
        row.sealed === null ? undefined : vault.open(row.sealed, secretPlace(row.uid, row.team_uid, row.secret_name)),
    });
  };
  return {
    /** A webhook as it was met last, by any sender. It may have changed: whoever relies on it has `record` look again. */
    recall: (uid: string): Receiver | undefined => remembered.get(uid),

    /** A webhook as it is now; undefined: absent or disabled. */
    async meet(uid: string, address: string, now: Date): Promise<Met | undefined> {
      const { rows } = await database.lookups.query<ReceiverRow>(MEET, [uid, failuresOf(address)]);
      const row = rows[0];
      if (!row) {
        remembered.delete(uid);
        return undefined;
      }
      return { to: read(row), refusedForSeconds: refusedFor(row.hits, now) };
    },
  };
}

const MEET = `
SELECT w.uid, w.team_uid, w.factory_uid, w.auth_mode, w.signature_scheme, w.signature_header, w.signature_prefix, w.secret_name, w.delivery_id_header, w.version,
       CASE WHEN w.secret_name IS NULL THEN w.secret_sealed ELSE s.sealed END AS sealed, f.hits
  FROM webhooks w LEFT JOIN team_secrets s ON s.team_uid = w.team_uid AND s.name = w.secret_name
                  LEFT JOIN rate_windows f ON f.webhook_uid = w.uid AND f.bucket = $2
 WHERE w.uid = $1 AND w.enabled AND w.deleted_at IS NULL`;

type ReceiverRow = {
  uid: string;
  team_uid: string;
  factory_uid: string;
  auth_mode: AuthMode;
  signature_scheme: SignatureScheme | null;
  signature_header: string | null;
  signature_prefix: string | null;
  secret_name: string | null;
  delivery_id_header: string | null;
  version: number;
  sealed: string | null;
  hits: Date[] | null;
};
