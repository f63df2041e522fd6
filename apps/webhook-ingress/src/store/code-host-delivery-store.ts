import type { Database } from "@millwright/database";
import { EVENTS_APPENDED } from "@millwright/events";
import { as, newUid, type TeamUid } from "@millwright/ids";
import { currentScope, formatTraceparent } from "@millwright/telemetry";
import type { Vault } from "@millwright/vault";
import type {
  CodeHostDelivery,
  CodeHostDeliveryUid,
  CodeHostIdentity,
  CodeHostUid,
  Provider,
} from "../domain/code-host-webhook.ts";
import type { Outcome } from "../domain/delivery.ts";
import {
  CODE_HOST_DELIVERIES_PER_WINDOW,
  FAILURES_PER_ADDRESS,
  FAILURES_PER_WEBHOOK,
  RETAINED_NEWEST,
  RETENTION_DAYS,
} from "../domain/limits.ts";
import type { Recorded } from "./delivery-store.ts";
import { DELIVERIES, FAILURES, failuresOf, hit, refusedFor, secondsUntilCapacity } from "./rate-windows.ts";
import { codeHostSecretContext } from "./secret-contexts.ts";

/** An open, enabled address with what is needed to authenticate a delivery. */
export type CodeHostReceiver = {
  readonly codeHostUid: CodeHostUid;
  readonly teamUid: TeamUid;
  readonly provider: Provider;
  readonly secret: string;
  /** Set while the sender's address has exceeded its failures. */
  readonly refusedForSeconds: number | undefined;
};

export type CodeHostEntry = {
  readonly outcome: Exclude<Outcome, "duplicate">;
  readonly event: string;
  readonly action: string;
  readonly identity?: CodeHostIdentity;
  readonly sizeBytes: number;
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly receivedAt: Date;
};

export type StoredCodeHostDelivery = {
  readonly delivery: CodeHostDelivery;
  readonly body: Uint8Array | undefined;
  readonly headers: Readonly<Record<string, string>>;
  /** The current bot login of its connection. */
  readonly botLogin: string;
};

/** Queries of the log of code-host connections. */
export function codeHostDeliveryStore(database: Database, vault: Vault) {
  return {
    /**
     * Returns an open, enabled address; undefined otherwise. Not cached, so that a change applies to the next request.
     */
    async findReceiver(codeHostUid: string, address: string, now: Date): Promise<CodeHostReceiver | undefined> {
      const { rows } = await database.lookups.query<{
        team_uid: string;
        provider: Provider;
        secret_sealed: string;
        hits: Date[] | null;
      }>(
        `SELECT w.team_uid, w.provider, w.secret_sealed, f.hits
           FROM code_host_webhooks w LEFT JOIN rate_windows f ON f.receiver_uid = w.code_host_uid AND f.bucket = $2
          WHERE w.code_host_uid = $1 AND w.enabled AND w.secret_sealed IS NOT NULL`,
        [codeHostUid, failuresOf(address)],
      );
      const row = rows[0];
      if (!row) return undefined;
      return {
        codeHostUid: as<CodeHostUid>(codeHostUid),
        teamUid: as<TeamUid>(row.team_uid),
        provider: row.provider,
        secret: vault.open(row.secret_sealed, codeHostSecretContext(codeHostUid)),
        refusedForSeconds: refusedFor(row.hits, now),
      };
    },

    /**
     * Counts and stores an authenticated delivery: an accepted one claims its identity and is published, or is a
     * duplicate. One statement, so that exactly one of several concurrent copies is accepted.
     */
    async record(to: CodeHostReceiver, entry: CodeHostEntry, requestId: string): Promise<Recorded> {
      const scope = currentScope();
      const { rows } = await database.sql.query<{ counted: boolean; stored: boolean }>(RECORD, [
        to.codeHostUid,
        entry.receivedAt,
        newUid<CodeHostDeliveryUid>(),
        to.teamUid,
        to.provider,
        entry.event,
        entry.action,
        entry.outcome,
        entry.identity?.kind ?? null,
        entry.identity?.id ?? null,
        entry.sizeBytes,
        entry.headers ? JSON.stringify(entry.headers) : null,
        entry.body ?? null,
        newUid(),
        requestId,
        scope ? formatTraceparent(scope.trace) : null,
      ]);
      const { counted, stored } = rows[0]!;
      if (stored) database.sql.announce?.(EVENTS_APPENDED);
      if (!counted)
        return {
          limitedForSeconds: await secondsUntilCapacity(database.sql, to.codeHostUid, DELIVERIES, entry.receivedAt),
        };
      return { outcome: entry.outcome === "accepted" && !stored ? "duplicate" : entry.outcome };
    },

    /** Counts a wrong credential for its address and for the connection; logs it while both budgets last. */
    async recordFailure(
      to: CodeHostReceiver,
      address: string,
      entry: Pick<CodeHostEntry, "outcome" | "sizeBytes" | "receivedAt">,
    ): Promise<Recorded> {
      const { rows } = await database.sql.query<{ of_address: boolean; of_webhook: boolean }>(FAIL, [
        to.codeHostUid,
        entry.receivedAt,
        failuresOf(address),
        newUid<CodeHostDeliveryUid>(),
        to.teamUid,
        to.provider,
        entry.outcome,
        entry.sizeBytes,
      ]);
      const { of_address: ofAddress, of_webhook: ofWebhook } = rows[0]!;
      if (ofWebhook) return { outcome: entry.outcome };
      return {
        limitedForSeconds: await secondsUntilCapacity(
          database.sql,
          to.codeHostUid,
          ofAddress ? FAILURES : failuresOf(address),
          entry.receivedAt,
        ),
      };
    },

    /** Lists deliveries, newest first, after a position. */
    async list(
      codeHostUid: string,
      after: { at: Date; uid: string } | undefined,
      limit: number,
    ): Promise<CodeHostDelivery[]> {
      const { rows } = await database.sql.query<DeliveryRow>(
        `SELECT ${COLUMNS} FROM code_host_deliveries d
          WHERE code_host_uid = $1 AND ($2::timestamptz IS NULL OR (received_at, uid) < ($2, $3::uuid))
          ORDER BY received_at DESC, uid DESC
          LIMIT $4`,
        [codeHostUid, after?.at ?? null, after?.uid ?? null, limit],
      );
      return rows.map(toDelivery);
    },

    /** Accepted deliveries of all connections after a uid, oldest first: uids are in order of time. */
    async walk(afterUid: string, limit: number): Promise<CodeHostDelivery[]> {
      const { rows } = await database.sql.query<DeliveryRow>(
        `SELECT ${COLUMNS}
           FROM code_host_deliveries d
          WHERE d.uid > $1
            AND d.outcome = 'accepted'
          ORDER BY d.uid
          LIMIT $2`,
        [afterUid, limit],
      );
      return rows.map(toDelivery);
    },

    async find(uid: string): Promise<StoredCodeHostDelivery | undefined> {
      const { rows } = await database.sql.query<StoredRow>(
        `SELECT ${STORED_COLUMNS}
           FROM code_host_deliveries d
           LEFT JOIN code_host_webhooks w ON w.code_host_uid = d.code_host_uid
          WHERE d.uid = $1`,
        [uid],
      );
      return rows[0] && toStored(rows[0]);
    },

    /**
     * Returns accepted deliveries in the order of their uids, as long as their bodies have at most so many bytes in
     * total, but at least one. `omittedUids`: the others that are stored.
     */
    async findAll(
      uids: readonly string[],
      bodyBytesMax: number,
    ): Promise<{ deliveries: StoredCodeHostDelivery[]; omittedUids: string[] }> {
      const { rows } = await database.sql.query<StoredRow & { asked_uid: string; is_omitted: boolean }>(
        `SELECT ${STORED_COLUMNS}, asked.uid AS asked_uid, asked.is_omitted
           FROM (SELECT d.uid, given.n,
                        sum(octet_length(d.body)) OVER by_position > $2 AND row_number() OVER by_position > 1 AS is_omitted
                   FROM unnest($1::uuid[]) WITH ORDINALITY AS given (uid, n)
                   JOIN code_host_deliveries d USING (uid)
                  WHERE d.outcome = 'accepted'
                 WINDOW by_position AS (ORDER BY given.n)) asked
           LEFT JOIN code_host_deliveries d ON d.uid = asked.uid AND NOT asked.is_omitted
           LEFT JOIN code_host_webhooks w ON w.code_host_uid = d.code_host_uid
          ORDER BY asked.n`,
        [uids, bodyBytesMax],
      );
      return {
        deliveries: rows.filter(({ is_omitted: isOmitted }) => !isOmitted).map(toStored),
        omittedUids: rows.filter(({ is_omitted: isOmitted }) => isOmitted).map(({ asked_uid: uid }) => uid),
      };
    },

    /** Deletes entries older than a week, except the newest fifty of an open address. */
    async prune(now: Date): Promise<number> {
      const { rowCount } = await database.sql.query(
        `DELETE FROM code_host_deliveries d USING (
           SELECT o.code_host_uid, CASE WHEN w.secret_sealed IS NULL THEN 'infinity'
                  ELSE (SELECT n.received_at FROM code_host_deliveries n WHERE n.code_host_uid = o.code_host_uid
                         ORDER BY n.received_at DESC, n.uid DESC OFFSET ${RETAINED_NEWEST - 1} LIMIT 1) END AS newest
             FROM (SELECT DISTINCT code_host_uid FROM code_host_deliveries WHERE received_at < $1) o
                  LEFT JOIN code_host_webhooks w USING (code_host_uid)) k
          WHERE d.code_host_uid = k.code_host_uid AND d.received_at < $1 AND d.received_at < k.newest`,
        [new Date(now.getTime() - RETENTION_DAYS * 24 * 3_600_000)],
      );
      return rowCount;
    },
  };
}

export type CodeHostDeliveryStore = ReturnType<typeof codeHostDeliveryStore>;

// $1 connection, $2 time, $3 uid, $4 team, $5 provider, $6 event, $7 action, $8 outcome, $9 kind of identity, $10 identity,
// $11 size, $12 headers, $13 body, $14 event's uid, $15 request, $16 trace
const RECORD = `
WITH counted AS (${hit(`'${DELIVERIES}'`, "$2::timestamptz", CODE_HOST_DELIVERIES_PER_WINDOW)}),
stored AS (
  INSERT INTO code_host_deliveries (uid, code_host_uid, team_uid, provider, event, action, outcome, dedupe_kind, dedupe_key,
                                    size_bytes, received_at, headers, body)
  SELECT $3::uuid, $1::uuid, $4::uuid, $5::text, $6::text, $7::text, 'accepted', $9::text, $10::text,
         $11::bigint, $2::timestamptz, $12::jsonb, $13::bytea
    FROM counted WHERE $8::text = 'accepted'
  ON CONFLICT (code_host_uid, dedupe_kind, dedupe_key) WHERE outcome = 'accepted' DO NOTHING
  RETURNING 1
), logged AS (
  INSERT INTO code_host_deliveries (uid, code_host_uid, team_uid, provider, event, action, outcome, dedupe_kind, dedupe_key,
                                    size_bytes, received_at)
  SELECT $3::uuid, $1::uuid, $4::uuid, $5::text, $6::text, $7::text,
         CASE $8::text WHEN 'accepted' THEN 'duplicate' ELSE $8::text END, $9::text, $10::text, $11::bigint, $2::timestamptz
    FROM counted WHERE NOT EXISTS (SELECT FROM stored)
), published AS (
  INSERT INTO stream.event_pending (uid, type, entity, entity_uid, entity_version, team_uid, actor_type, actor_uid, request_id,
                                    traceparent, occurred_at, payload)
  SELECT $14::uuid, 'millwright.code_host_delivery.accepted.v1', 'code_host_delivery', $3::uuid::text, 1, $4::uuid,
         'code_host', $1::uuid::text, $15::text, $16::text, $2::timestamptz,
         jsonb_build_object('code_host_uid', $1::uuid, 'provider', $5::text, 'event', $6::text, 'delivery_id', $10::text,
                            'size_bytes', $11::bigint)
    FROM stored
)
SELECT EXISTS (SELECT FROM counted) AS counted, EXISTS (SELECT FROM stored) AS stored`;

// $1 connection, $2 time, $3 bucket of the address, $4 uid, $5 team, $6 provider, $7 outcome, $8 size
const FAIL = `
WITH of_address AS (${hit("$3::text", "$2::timestamptz", FAILURES_PER_ADDRESS)}),
of_webhook AS (${hit(`'${FAILURES}'`, "$2::timestamptz", FAILURES_PER_WEBHOOK, "FROM of_address")}),
logged AS (
  INSERT INTO code_host_deliveries (uid, code_host_uid, team_uid, provider, outcome, size_bytes, received_at)
  SELECT $4::uuid, $1::uuid, $5::uuid, $6::text, $7::text, $8::bigint, $2::timestamptz FROM of_webhook
)
SELECT EXISTS (SELECT FROM of_address) AS of_address, EXISTS (SELECT FROM of_webhook) AS of_webhook`;

const COLUMNS =
  "d.uid, d.code_host_uid, d.team_uid, d.provider, d.event, d.action, d.outcome, d.dedupe_key, d.size_bytes, d.received_at";
type DeliveryRow = {
  uid: string;
  code_host_uid: string;
  team_uid: string;
  provider: Provider;
  event: string;
  action: string;
  outcome: Outcome;
  dedupe_key: string | null;
  size_bytes: number;
  received_at: Date;
};

const STORED_COLUMNS = `${COLUMNS}, d.body, d.headers, w.bot_login`;
type StoredRow = DeliveryRow & {
  body: Uint8Array | null;
  headers: Record<string, string> | null;
  bot_login: string | null;
};

const toStored = (row: StoredRow): StoredCodeHostDelivery => ({
  delivery: toDelivery(row),
  body: row.body ?? undefined,
  headers: row.headers ?? {},
  botLogin: row.bot_login ?? "",
});

const toDelivery = (row: DeliveryRow): CodeHostDelivery => ({
  uid: as<CodeHostDeliveryUid>(row.uid),
  codeHostUid: as<CodeHostUid>(row.code_host_uid),
  teamUid: as<TeamUid>(row.team_uid),
  provider: row.provider,
  event: row.event,
  action: row.action,
  outcome: row.outcome,
  deliveryId: row.dedupe_key ?? undefined,
  sizeBytes: row.size_bytes,
  receivedAt: row.received_at,
});
