import { Gathering, isTransient, type Database, type Sql } from "@millwright/database";
import { EVENTS_APPENDED } from "@millwright/events";
import { as, newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import { currentScope, formatTraceparent } from "@millwright/telemetry";
import type { Vault } from "@millwright/vault";
import type { Delivery, DeliveryIdentity, DeliveryUid, Outcome } from "../domain/delivery.ts";
import { DELIVERIES_PER_WINDOW, FAILURES_PER_ADDRESS, FAILURES_PER_WEBHOOK, KEPT_DAYS, KEPT_NEWEST, retryAfterSeconds, WINDOW_MS } from "../domain/limits.ts";
import type { AuthMode, WebhookAuth, WebhookUid } from "../domain/webhook.ts";
import type { SignatureScheme } from "../domain/signature-schemes.ts";
import { secretPlace } from "./secret-places.ts";

/** A webhook as its senders meet it. */
export type Receiver = WebhookAuth & {
  readonly uid: WebhookUid;
  readonly teamUid: TeamUid;
  readonly factoryUid: FactoryUid;
  readonly deliveryIdHeader: string | undefined;
  /** Absent: nobody can be let in. */
  readonly secret: string | undefined;
  /** Set while the sender's address has used up its failures. */
  readonly refusedForSeconds: number | undefined;
};

export type Entry = { readonly outcome: Exclude<Outcome, "duplicate">; readonly identity?: DeliveryIdentity; readonly sizeBytes: number; readonly payload?: Uint8Array; readonly receivedAt: Date };

/** What became of an entry: stored, or not, because a budget is used up. */
export type Recorded = { readonly outcome: Outcome } | { readonly limitedForSeconds: number };

const DELIVERIES = "deliveries";
const FAILURES = "failures";
const failuresOf = (address: string): string => `${FAILURES} ${address}`;

/** One more hit in a budget, if there is room: the SQL answers a row then, and none otherwise. A hit of exactly a minute ago has left. */
const hit = (bucket: string, at: string, most: number, from = ""): string => `
  INSERT INTO rate_windows AS w (webhook_uid, bucket, hits) SELECT $1::uuid, ${bucket}, ARRAY[${at}] ${from}
  ON CONFLICT (webhook_uid, bucket) DO UPDATE
     SET hits = (SELECT coalesce(array_agg(h ORDER BY h), '{}') FROM unnest(w.hits) h WHERE h > ${at} - interval '${WINDOW_MS} milliseconds') || ${at}
   WHERE (SELECT count(*) FROM unnest(w.hits) h WHERE h > ${at} - interval '${WINDOW_MS} milliseconds') < ${most}
  RETURNING 1`;

/** The hostile edge's own statements: one to meet a webhook, one to record what was sent to it. */
export function deliveryStore(database: Database, vault: Vault) {
  const secrets = new OpenedSecrets(vault);
  const records = new Gathering((all: readonly Parameters[]) => recordTogether(database, all), (error) => !isTransient(error) || isDeadlock(error));
  const oldest = async (webhookUid: string, bucket: string, now: Date): Promise<number> => {
    const { rows } = await database.sql.query<{ at: Date | null }>(
      "SELECT (SELECT min(h) FROM unnest(hits) h WHERE h > $3::timestamptz - make_interval(secs => $4)) AS at FROM rate_windows WHERE webhook_uid = $1 AND bucket = $2",
      [webhookUid, bucket, now, WINDOW_MS / 1000],
    );
    return retryAfterSeconds(rows[0]?.at ?? now, now);
  };
  return {
    /** An enabled webhook; undefined otherwise. Looked up for every request: what disables it, or changes its secret, counts at once. */
    async meet(uid: string, address: string, now: Date): Promise<Receiver | undefined> {
      const { rows } = await database.lookups.query<ReceiverRow>(
        `SELECT w.uid, w.team_uid, w.factory_uid, w.auth_mode, w.signature_scheme, w.signature_header, w.signature_prefix, w.secret_name, w.delivery_id_header,
                CASE WHEN w.secret_name IS NULL THEN w.secret_sealed ELSE s.sealed END AS sealed, f.hits
           FROM webhooks w LEFT JOIN team_secrets s ON s.team_uid = w.team_uid AND s.name = w.secret_name
                           LEFT JOIN rate_windows f ON f.webhook_uid = w.uid AND f.bucket = $2
          WHERE w.uid = $1 AND w.enabled AND w.deleted_at IS NULL`,
        [uid, failuresOf(address)],
      );
      const row = rows[0];
      if (!row) return undefined;
      const recent = (row.hits ?? []).filter((at) => at.getTime() > now.getTime() - WINDOW_MS).toSorted((a, b) => a.getTime() - b.getTime());
      return {
        uid: as<WebhookUid>(row.uid), teamUid: as<TeamUid>(row.team_uid), factoryUid: as<FactoryUid>(row.factory_uid), authMode: row.auth_mode,
        signatureScheme: row.signature_scheme ?? undefined, signatureHeader: row.signature_header ?? undefined, signaturePrefix: row.signature_prefix ?? undefined,
        secretName: row.secret_name ?? undefined, deliveryIdHeader: row.delivery_id_header ?? undefined,
        secret: row.sealed === null ? undefined : secrets.open(row.sealed, secretPlace(row.uid, row.team_uid, row.secret_name)),
        refusedForSeconds: recent.length >= FAILURES_PER_ADDRESS ? retryAfterSeconds(recent.at(-FAILURES_PER_ADDRESS)!, now) : undefined,
      };
    },

    /**
     * Counts a delivery with the right credential, and stores it: an accepted one claims its identity, and is announced, or
     * is a duplicate. One statement, so that of copies that come at once exactly one is accepted; deliveries that come while
     * others are being stored share the next commit.
     */
    async record(to: Receiver, entry: Entry, requestId: string): Promise<Recorded> {
      const scope = currentScope();
      const { counted, stored } = await records.ask([
        to.uid, entry.receivedAt, newUid<DeliveryUid>(), to.teamUid, to.factoryUid, entry.outcome, entry.identity?.kind ?? null, entry.identity?.id ?? null,
        entry.sizeBytes, entry.payload ?? null, newUid(), requestId, scope ? formatTraceparent(scope.trace) : null,
      ]);
      if (!counted) return { limitedForSeconds: await oldest(to.uid, DELIVERIES, entry.receivedAt) };
      if (entry.outcome !== "accepted") return { outcome: entry.outcome };
      return { outcome: stored ? "accepted" : "duplicate" };
    },

    /** Counts a wrong credential, for its address and for the webhook; logged while both budgets last. */
    async recordFailure(to: Receiver, address: string, entry: Pick<Entry, "outcome" | "sizeBytes" | "receivedAt">): Promise<Recorded> {
      const { rows } = await database.sql.query<{ of_address: boolean; of_webhook: boolean }>(FAIL, [
        to.uid, entry.receivedAt, failuresOf(address), newUid<DeliveryUid>(), to.teamUid, to.factoryUid, entry.outcome, entry.sizeBytes,
      ]);
      const { of_address: ofAddress, of_webhook: ofWebhook } = rows[0]!;
      if (ofWebhook) return { outcome: entry.outcome };
      return { limitedForSeconds: await oldest(to.uid, ofAddress ? FAILURES : failuresOf(address), entry.receivedAt) };
    },

    /** Newest first, after a position. */
    async list(webhookUid: string, after: { at: Date; uid: string } | undefined, limit: number): Promise<Delivery[]> {
      const { rows } = await database.sql.query<DeliveryRow>(
        `SELECT ${COLUMNS} FROM deliveries WHERE webhook_uid = $1 AND ($2::timestamptz IS NULL OR (received_at, uid) < ($2, $3::uuid)) ORDER BY received_at DESC, uid DESC LIMIT $4`,
        [webhookUid, after?.at ?? null, after?.uid ?? null, limit],
      );
      return rows.map(toDelivery);
    },

    async find(uid: string): Promise<{ delivery: Delivery; payload: Uint8Array | undefined } | undefined> {
      const { rows } = await database.sql.query<DeliveryRow & { payload: Uint8Array | null }>(`SELECT ${COLUMNS}, payload FROM deliveries WHERE uid = $1`, [uid]);
      return rows[0] && { delivery: toDelivery(rows[0]), payload: rows[0].payload ?? undefined };
    },

    /** Forgets what is older than a week and not among the newest fifty of its webhook; and budgets nobody used for a while. */
    async prune(now: Date): Promise<number> {
      const old = new Date(now.getTime() - KEPT_DAYS * 24 * 3_600_000);
      await database.sql.query(
        `DELETE FROM rate_windows WHERE (webhook_uid, bucket) IN (
           SELECT webhook_uid, bucket FROM rate_windows WHERE NOT EXISTS (SELECT FROM unnest(hits) h WHERE h > $1::timestamptz - make_interval(secs => $2)) FOR UPDATE SKIP LOCKED)`,
        [now, WINDOW_MS / 1000],
      );
      const { rowCount } = await database.sql.query(
        `DELETE FROM deliveries d USING (
           SELECT o.webhook_uid, (SELECT n.received_at FROM deliveries n WHERE n.webhook_uid = o.webhook_uid ORDER BY n.received_at DESC, n.uid DESC OFFSET ${KEPT_NEWEST - 1} LIMIT 1) AS newest
             FROM (SELECT DISTINCT webhook_uid FROM deliveries WHERE received_at < $1) o) k
          WHERE d.webhook_uid = k.webhook_uid AND d.received_at < $1 AND d.received_at < k.newest`,
        [old],
      );
      return rowCount;
    },
  };
}

type Parameters = readonly [webhookUid: string, receivedAt: Date, uid: string, ...unknown[]];
type Counted = { readonly counted: boolean; readonly stored: boolean };

/** In the order of webhooks, so that replicas never wait for each other in circles; answered in the order of asking. */
async function recordTogether(database: Database, all: readonly Parameters[]): Promise<Counted[]> {
  if (all.length === 1) return [tell(database, await recordOne(database.sql, all[0]!))];
  const inOrder = all.toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  const found = await database.transaction(async (tx) => new Map(await Promise.all(inOrder.map(async (one) => [one, await recordOne(tx, one)] as const))));
  return all.map((one) => tell(database, found.get(one)!));
}

/** Undone as a whole, for certain. */
const isDeadlock = (error: unknown): boolean => (error as { code?: unknown } | undefined)?.code === "40P01";

const recordOne = async (sql: Sql, parameters: Parameters): Promise<Counted> => (await sql.query<Counted>(RECORD, parameters)).rows[0]!;

function tell(database: Database, recorded: Counted): Counted {
  if (recorded.stored) database.sql.announce?.(EVENTS_APPENDED);
  return recorded;
}

export type DeliveryStore = ReturnType<typeof deliveryStore>;

// $1 webhook, $2 time, $3 uid, $4 team, $5 factory, $6 outcome, $7 kind of identity, $8 identity, $9 size, $10 payload, $11 event, $12 request, $13 trace
const RECORD = `
WITH counted AS (${hit(`'${DELIVERIES}'`, "$2::timestamptz", DELIVERIES_PER_WINDOW)}),
stored AS (
  INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, identity_kind, delivery_id, size_bytes, received_at, payload)
  SELECT $3::uuid, $1::uuid, $4::uuid, $5::uuid, 'accepted', $7::text, $8::text, $9::bigint, $2::timestamptz, $10::bytea FROM counted WHERE $6::text = 'accepted'
  ON CONFLICT (webhook_uid, identity_kind, delivery_id) WHERE outcome = 'accepted' DO NOTHING
  RETURNING 1
), logged AS (
  INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, identity_kind, delivery_id, size_bytes, received_at)
  SELECT $3::uuid, $1::uuid, $4::uuid, $5::uuid, CASE $6::text WHEN 'accepted' THEN 'duplicate' ELSE $6::text END, $7::text, $8::text, $9::bigint, $2::timestamptz
    FROM counted WHERE NOT EXISTS (SELECT FROM stored)
), told AS (
  INSERT INTO stream.event_pending (uid, type, entity, entity_uid, entity_version, team_uid, actor_type, actor_uid, request_id, traceparent, occurred_at, payload)
  SELECT $11::uuid, 'millwright.delivery.accepted.v1', 'delivery', $3::uuid::text, 1, $4::uuid, 'webhook', $1::uuid::text, $12::text, $13::text, $2::timestamptz,
         jsonb_build_object('webhook_uid', $1::uuid, 'factory_uid', $5::uuid, 'delivery_id', $8::text, 'size_bytes', $9::bigint)
    FROM stored
)
SELECT EXISTS (SELECT FROM counted) AS counted, EXISTS (SELECT FROM stored) AS stored`;

// $1 webhook, $2 time, $3 bucket of the address, $4 uid, $5 team, $6 factory, $7 outcome, $8 size
const FAIL = `
WITH of_address AS (${hit("$3::text", "$2::timestamptz", FAILURES_PER_ADDRESS)}),
of_webhook AS (${hit(`'${FAILURES}'`, "$2::timestamptz", FAILURES_PER_WEBHOOK, "FROM of_address")}),
logged AS (
  INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, size_bytes, received_at)
  SELECT $4::uuid, $1::uuid, $5::uuid, $6::uuid, $7::text, $8::bigint, $2::timestamptz FROM of_webhook
)
SELECT EXISTS (SELECT FROM of_address) AS of_address, EXISTS (SELECT FROM of_webhook) AS of_webhook`;

type ReceiverRow = {
  uid: string; team_uid: string; factory_uid: string; auth_mode: AuthMode; signature_scheme: SignatureScheme | null; signature_header: string | null;
  signature_prefix: string | null; secret_name: string | null; delivery_id_header: string | null; sealed: string | null; hits: Date[] | null;
};

const COLUMNS = "uid, webhook_uid, team_uid, factory_uid, outcome, delivery_id, size_bytes, received_at";
type DeliveryRow = { uid: string; webhook_uid: string; team_uid: string; factory_uid: string; outcome: Outcome; delivery_id: string | null; size_bytes: number; received_at: Date };

const toDelivery = (row: DeliveryRow): Delivery => ({
  uid: as<DeliveryUid>(row.uid), webhookUid: as<WebhookUid>(row.webhook_uid), teamUid: as<TeamUid>(row.team_uid), factoryUid: as<FactoryUid>(row.factory_uid),
  outcome: row.outcome, deliveryId: row.delivery_id ?? undefined, sizeBytes: row.size_bytes, receivedAt: row.received_at,
});

/** Secrets by their sealed texts, which change with them: opening one costs more than all else that a small delivery does. */
class OpenedSecrets {
  readonly #vault: Vault;
  readonly #opened = new Map<string, string>();

  constructor(vault: Vault) {
    this.#vault = vault;
  }

  open(sealed: string, place: string): string {
    const known = this.#opened.get(sealed);
    if (known !== undefined) return known;
    if (this.#opened.size >= 1_000) this.#opened.clear();
    const secret = this.#vault.open(sealed, place);
    this.#opened.set(sealed, secret);
    return secret;
  }
}

