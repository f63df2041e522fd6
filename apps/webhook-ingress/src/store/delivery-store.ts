import type { Database } from "@millwright/database";
import { as, newUid, type FactoryUid, type TeamUid } from "@millwright/ids";
import { currentScope, formatTraceparent } from "@millwright/telemetry";
import type { Vault } from "@millwright/vault";
import type { Delivery, DeliveryIdentity, DeliveryUid, Outcome } from "../domain/delivery.ts";
import { FAILURES_PER_ADDRESS, FAILURES_PER_WEBHOOK, RETAINED_NEWEST, RETENTION_DAYS } from "../domain/limits.ts";
import type { WebhookUid } from "../domain/webhook.ts";
import { deliveryInserter } from "./insert-deliveries.ts";
import { DELIVERIES, FAILURES, failuresOf, hit, pruneRateWindows, secondsUntilCapacity } from "./rate-windows.ts";
import { receivers, type Receiver } from "./receivers.ts";

export type Entry = {
  readonly outcome: Exclude<Outcome, "duplicate">;
  readonly identity?: DeliveryIdentity;
  readonly sizeBytes: number;
  readonly payload?: Uint8Array;
  readonly receivedAt: Date;
};

/** The outcome of an entry; or not recorded, because a budget is exceeded. */
export type Recorded = { readonly outcome: Outcome } | { readonly limitedForSeconds: number };

/** Queries of webhook deliveries: reading a receiver, recording a delivery, and the log. */
export function deliveryStore(database: Database, vault: Vault) {
  const insert = deliveryInserter(database);
  return {
    ...receivers(database, vault),

    /**
     * Counts and stores an authenticated delivery: an accepted one claims its identity and is published, or is a
     * duplicate. Concurrent deliveries share statements. Returns `stale`, and changes nothing, if the webhook differs
     * from `to` or refuses the address.
     */
    async record(to: Receiver, address: string, entry: Entry, requestId: string): Promise<Recorded | "stale"> {
      const scope = currentScope();
      const result = await insert({
        webhook: to.uid,
        team: to.teamUid,
        factory: to.factoryUid,
        version: to.version,
        sealed: to.sealed,
        failures: failuresOf(address),
        at: entry.receivedAt,
        uid: newUid<DeliveryUid>(),
        outcome: entry.outcome,
        kind: entry.identity?.kind ?? null,
        id: entry.identity?.id ?? null,
        size: entry.sizeBytes,
        payload: entry.payload,
        event: newUid(),
        request: requestId,
        trace: scope ? formatTraceparent(scope.trace) : null,
      });
      if (result === "stale") return result;
      if (result === "limited")
        return { limitedForSeconds: await secondsUntilCapacity(database.sql, to.uid, DELIVERIES, entry.receivedAt) };
      if (entry.outcome !== "accepted") return { outcome: entry.outcome };
      return { outcome: result === "inserted" ? "accepted" : "duplicate" };
    },

    /** Counts a wrong credential for its address and for the webhook; logs it while both budgets last. */
    async recordFailure(
      to: Receiver,
      address: string,
      entry: Pick<Entry, "outcome" | "sizeBytes" | "receivedAt">,
    ): Promise<Recorded> {
      const { rows } = await database.sql.query<{ of_address: boolean; of_webhook: boolean }>(FAIL, [
        to.uid,
        entry.receivedAt,
        failuresOf(address),
        newUid<DeliveryUid>(),
        to.teamUid,
        to.factoryUid,
        entry.outcome,
        entry.sizeBytes,
      ]);
      const { of_address: ofAddress, of_webhook: ofWebhook } = rows[0]!;
      if (ofWebhook) return { outcome: entry.outcome };
      return {
        limitedForSeconds: await secondsUntilCapacity(
          database.sql,
          to.uid,
          ofAddress ? FAILURES : failuresOf(address),
          entry.receivedAt,
        ),
      };
    },

    /** Lists deliveries, newest first, after a position. */
    async list(webhookUid: string, after: { at: Date; uid: string } | undefined, limit: number): Promise<Delivery[]> {
      const { rows } = await database.sql.query<DeliveryRow>(
        `SELECT ${COLUMNS} FROM deliveries
          WHERE webhook_uid = $1 AND ($2::timestamptz IS NULL OR (received_at, uid) < ($2, $3::uuid))
          ORDER BY received_at DESC, uid DESC
          LIMIT $4`,
        [webhookUid, after?.at ?? null, after?.uid ?? null, limit],
      );
      return rows.map(toDelivery);
    },

    async find(
      uid: string,
    ): Promise<{ delivery: Delivery; payload: Uint8Array | undefined; webhookName: string } | undefined> {
      const { rows } = await database.sql.query<
        DeliveryRow & { payload: Uint8Array | null; webhook_name: string | null }
      >(
        `SELECT ${COLUMNS}, payload, (SELECT w.name FROM webhooks w WHERE w.uid = d.webhook_uid) AS webhook_name
           FROM deliveries d
          WHERE uid = $1`,
        [uid],
      );
      return (
        rows[0] && {
          delivery: toDelivery(rows[0]),
          payload: rows[0].payload ?? undefined,
          webhookName: rows[0].webhook_name ?? "",
        }
      );
    },

    /** Deletes unused budgets, and entries older than a week except the newest fifty of an existing webhook. */
    async prune(now: Date): Promise<number> {
      const old = new Date(now.getTime() - RETENTION_DAYS * 24 * 3_600_000);
      await pruneRateWindows(database.sql, now);
      const { rowCount } = await database.sql.query(
        `DELETE FROM deliveries d USING (
           SELECT w.uid, CASE WHEN w.deleted_at IS NOT NULL THEN 'infinity'
                  ELSE (SELECT n.received_at FROM deliveries n WHERE n.webhook_uid = w.uid
                         ORDER BY n.received_at DESC, n.uid DESC OFFSET ${RETAINED_NEWEST - 1} LIMIT 1) END AS newest
             FROM webhooks w WHERE EXISTS (SELECT FROM deliveries o WHERE o.webhook_uid = w.uid AND o.received_at < $1)) k
          WHERE d.webhook_uid = k.uid AND d.received_at < $1 AND d.received_at < k.newest`,
        [old],
      );
      return rowCount;
    },
  };
}

export type DeliveryStore = ReturnType<typeof deliveryStore>;

// $1 webhook, $2 time, $3 bucket of the address, $4 uid, $5 team, $6 factory, $7 outcome, $8 size
const FAIL = `
WITH of_address AS (${hit("$3::text", "$2::timestamptz", FAILURES_PER_ADDRESS)}),
of_webhook AS (${hit(`'${FAILURES}'`, "$2::timestamptz", FAILURES_PER_WEBHOOK, "FROM of_address")}),
logged AS (
  INSERT INTO deliveries (uid, webhook_uid, team_uid, factory_uid, outcome, size_bytes, received_at)
  SELECT $4::uuid, $1::uuid, $5::uuid, $6::uuid, $7::text, $8::bigint, $2::timestamptz FROM of_webhook
)
SELECT EXISTS (SELECT FROM of_address) AS of_address, EXISTS (SELECT FROM of_webhook) AS of_webhook`;

const COLUMNS = "uid, webhook_uid, team_uid, factory_uid, outcome, dedupe_key, size_bytes, received_at";
type DeliveryRow = {
  uid: string;
  webhook_uid: string;
  team_uid: string;
  factory_uid: string;
  outcome: Outcome;
  dedupe_key: string | null;
  size_bytes: number;
  received_at: Date;
};

const toDelivery = (row: DeliveryRow): Delivery => ({
  uid: as<DeliveryUid>(row.uid),
  webhookUid: as<WebhookUid>(row.webhook_uid),
  teamUid: as<TeamUid>(row.team_uid),
  factoryUid: as<FactoryUid>(row.factory_uid),
  outcome: row.outcome,
  deliveryId: row.dedupe_key ?? undefined,
  sizeBytes: row.size_bytes,
  receivedAt: row.received_at,
});
