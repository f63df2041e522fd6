import type { Database } from "@millwright/database";
import { as, type FactoryUid, type TeamUid } from "@millwright/ids";
import type { Vault } from "@millwright/vault";
import type { SignatureScheme } from "../domain/signature-schemes.ts";
import type { AuthMode, WebhookAuth, WebhookUid } from "../domain/webhook.ts";
import { failuresOf, refusedFor } from "./rate-windows.ts";
import { secretContext } from "./secret-contexts.ts";

/** A webhook with what is needed to authenticate its senders. */
export type Receiver = WebhookAuth & {
  readonly uid: WebhookUid;
  readonly teamUid: TeamUid;
  readonly factoryUid: FactoryUid;
  readonly deliveryIdHeader: string | undefined;
  /** Absent: every sender is rejected. */
  readonly secret: string | undefined;
  /** The row that this was read from; a cached receiver is valid while both are unchanged. */
  readonly version: number;
  readonly sealed: string | null;
};

/** `refusedForSeconds`: set while the sender's address has exceeded its failures. */
export type FoundReceiver = { readonly to: Receiver; readonly refusedForSeconds: number | undefined };

const CACHED_MAX = 10_000;

/** Reads and caches the receivers of enabled webhooks, by uid. */
export function receivers(database: Database, vault: Vault) {
  const cache = new Map<string, Receiver>();
  const addToCache = (to: Receiver): Receiver => {
    if (cache.size >= CACHED_MAX) cache.clear();
    cache.set(to.uid, to);
    return to;
  };
  const read = (row: ReceiverRow): Receiver => {
    const cached = cache.get(row.uid);
    if (cached?.version === row.version && cached.sealed === row.sealed) return cached; // opening a secret dominates the cost of a small delivery
    return addToCache({
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
        row.sealed === null ? undefined : vault.open(row.sealed, secretContext(row.uid, row.team_uid, row.secret_name)),
    });
  };
  return {
    /** Returns the receiver as last read. It may be out of date; `record` checks it. */
    cachedReceiver: (uid: string): Receiver | undefined => cache.get(uid),

    /** Returns the current receiver; undefined if the webhook is absent or disabled. */
    async findReceiver(uid: string, address: string, now: Date): Promise<FoundReceiver | undefined> {
      const { rows } = await database.lookups.query<ReceiverRow>(FIND_RECEIVER, [uid, failuresOf(address)]);
      const row = rows[0];
      if (!row) {
        cache.delete(uid);
        return undefined;
      }
      return { to: read(row), refusedForSeconds: refusedFor(row.hits, now) };
    },
  };
}

const FIND_RECEIVER = `
SELECT w.uid, w.team_uid, w.factory_uid, w.auth_mode, w.signature_scheme, w.signature_header, w.signature_prefix, w.secret_name,
       w.delivery_id_header, w.version,
       CASE WHEN w.secret_name IS NULL THEN w.secret_sealed ELSE s.sealed END AS sealed, f.hits
  FROM webhooks w LEFT JOIN team_secrets s ON s.team_uid = w.team_uid AND s.name = w.secret_name
                  LEFT JOIN rate_windows f ON f.receiver_uid = w.uid AND f.bucket = $2
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
