import type { Database, Sql } from "@millwright/database";
import { appendEvents, type NewEvent } from "@millwright/events";
import { IdempotencyStore, type IdempotentRequest } from "@millwright/idempotency";
import { as, type FactoryUid, type TeamUid } from "@millwright/ids";
import type { Vault } from "@millwright/vault";
import type { SignatureScheme } from "../domain/signature-schemes.ts";
import type { AuthMode, Management, Webhook, WebhookUid } from "../domain/webhook.ts";
import { secretContext } from "./secret-contexts.ts";

/** A change of a webhook: the next state, the new secret if any, and the event. */
export type WebhookChange = {
  readonly next: Webhook;
  readonly secret?: string;
  readonly isDeleted?: boolean;
  readonly event: NewEvent;
};

/** Queries of webhooks and their own secrets. */
export function webhookStore(database: Database, vault: Vault) {
  const responses = new IdempotencyStore({ vault });
  const seal = (uid: string, secret: string): string => vault.seal(secret, secretContext(uid, "", null));
  return {
    /** Returns a webhook; undefined if it is absent or deleted. */
    async find(uid: string): Promise<Webhook | undefined> {
      const { rows } = await database.sql.query<WebhookRow>(
        `${SELECT_WEBHOOKS()} WHERE w.uid = $1 AND w.deleted_at IS NULL`,
        [uid],
      );
      return rows[0] && toWebhook(rows[0]);
    },

    /** Lists the webhooks of a team that name a managed secret. */
    async listNaming({ teamUid, name }: { readonly teamUid: string; readonly name: string }): Promise<Webhook[]> {
      const { rows } = await database.sql.query<WebhookRow>(
        `${SELECT_WEBHOOKS()} WHERE w.team_uid = $1 AND w.secret_name = $2 AND w.deleted_at IS NULL ORDER BY w.created_at, w.uid`,
        [teamUid, name],
      );
      return rows.map(toWebhook);
    },

    /** Lists the webhooks of a factory, oldest first. */
    async list(factoryUid: string): Promise<Webhook[]> {
      const { rows } = await database.sql.query<WebhookRow>(
        `${SELECT_WEBHOOKS()} WHERE w.factory_uid = $1 AND w.deleted_at IS NULL ORDER BY w.created_at, w.uid`,
        [factoryUid],
      );
      return rows.map(toWebhook);
    },

    /** Returns what an earlier request with the same idempotency key created. Errors: idempotency_mismatch. */
    findCreated: (request: IdempotentRequest, now: Date): Promise<CreatedRecord | undefined> =>
      responses.find<CreatedRecord>(database.sql, request, now),

    /**
     * Inserts a webhook and returns it; returns undefined if its factory already has `max` webhooks. A repeated
     * idempotent request returns the result of the first. Errors: idempotency_mismatch (conflict).
     */
    async create(
      webhook: Webhook,
      secret: string | undefined,
      generatedSecret: string | undefined,
      event: NewEvent,
      request: IdempotentRequest | undefined,
      max: number,
      now: Date,
    ): Promise<CreatedRecord | undefined> {
      const created: CreatedRecord = {
        uid: webhook.uid,
        created_at: webhook.createdAt.toISOString(),
        generated_secret: generatedSecret,
      };
      return database
        .transaction(async (tx) => {
          await lockFactory(tx, webhook.factoryUid);
          return responses.once(tx, request, now, async () => {
            const { rows } = await tx.query<{ count: number }>(
              "SELECT count(*) AS count FROM webhooks WHERE factory_uid = $1 AND deleted_at IS NULL",
              [webhook.factoryUid],
            );
            if (rows[0]!.count >= max) throw new TooMany();
            await insertWebhook(tx, webhook, secret === undefined ? null : seal(webhook.uid, secret));
            await appendEvents(tx, [event]);
            return created;
          });
        })
        .catch((error: unknown) => {
          if (error instanceof TooMany) return undefined;
          throw error;
        });
    },

    /** Locks and changes a webhook; returns undefined if it is absent or deleted. */
    async update(uid: string, change: (webhook: Webhook) => WebhookChange, now: Date): Promise<Webhook | undefined> {
      return database.transaction(async (tx) => {
        await tx.query("SELECT 1 FROM webhooks WHERE uid = $1 FOR UPDATE", [uid]);
        const { rows } = await tx.query<WebhookRow>(`${SELECT_WEBHOOKS()} WHERE w.uid = $1 AND w.deleted_at IS NULL`, [
          uid,
        ]);
        if (!rows[0]) return undefined;
        const { next, secret, isDeleted, event } = change(toWebhook(rows[0]));
        await tx.query(
          `UPDATE webhooks
              SET name = $2, delivery_id_header = $3, enabled = $4, version = $5, updated_at = $6,
                  secret_sealed = CASE WHEN NOT $8::boolean THEN coalesce($7, secret_sealed) END,
                  deleted_at = CASE WHEN $8::boolean THEN $6::timestamptz END
            WHERE uid = $1`,
          [
            uid,
            next.name,
            next.deliveryIdHeader ?? null,
            next.enabled,
            next.version,
            now,
            secret === undefined ? null : seal(uid, secret),
            isDeleted ?? false,
          ],
        );
        await appendEvents(tx, [event]);
        return next;
      });
    },
  };
}

/** The stored response to an idempotent creation. */
export type CreatedRecord = {
  readonly uid: string;
  readonly created_at: string;
  readonly generated_secret: string | undefined;
};

export type WebhookStore = ReturnType<typeof webhookStore>;

class TooMany extends Error {}

/** Locks the webhooks of a factory until the transaction ends. */
export const lockFactory = (tx: Sql, factoryUid: string) =>
  tx.query("SELECT pg_advisory_xact_lock(hashtextextended('webhooks ' || $1::text, 0))::text", [factoryUid]);

/** Deletes every webhook of a deleted factory, in the consumer's transaction. Returns those that it deleted. */
export async function deleteWebhooksOf(tx: Sql, factoryUid: string, now: Date): Promise<Webhook[]> {
  await lockFactory(tx, factoryUid);
  const { rows } = await tx.query<WebhookRow>(
    `${SELECT_WEBHOOKS()} WHERE w.factory_uid = $1 AND w.deleted_at IS NULL ORDER BY w.created_at, w.uid`,
    [factoryUid],
  );
  await tx.query(
    `UPDATE webhooks SET deleted_at = $2, updated_at = $2, version = version + 1, secret_sealed = NULL
      WHERE factory_uid = $1 AND deleted_at IS NULL`,
    [factoryUid, now],
  );
  return rows.map(toWebhook);
}

export async function insertWebhook(tx: Sql, webhook: Webhook, sealed: string | null): Promise<void> {
  await tx.query(
    `INSERT INTO webhooks (uid, team_uid, factory_uid, name, auth_mode, signature_scheme, signature_header, signature_prefix,
                           secret_name, secret_sealed, delivery_id_header, enabled, management, version, created_at, updated_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15)`,
    [
      webhook.uid,
      webhook.teamUid,
      webhook.factoryUid,
      webhook.name,
      webhook.authMode,
      webhook.signatureScheme ?? null,
      webhook.signatureHeader ?? null,
      webhook.signaturePrefix ?? null,
      webhook.secretName ?? null,
      sealed,
      webhook.deliveryIdHeader ?? null,
      webhook.enabled,
      webhook.management,
      webhook.version,
      webhook.createdAt,
    ],
  );
}

/** Returns the SELECT of webhooks, with further columns. */
export const SELECT_WEBHOOKS = (...columns: readonly string[]): string => `
SELECT ${columns.map((column) => `${column}, `).join("")}w.uid, w.team_uid, w.factory_uid, w.name, w.auth_mode,
       w.signature_scheme, w.signature_header, w.signature_prefix, w.secret_name, w.delivery_id_header,
       w.enabled, w.management, w.version, w.created_at, w.updated_at,
       CASE WHEN w.secret_name IS NULL THEN w.secret_sealed ELSE s.sealed END IS NOT NULL AS secret_set,
       (SELECT d.received_at FROM deliveries d WHERE d.webhook_uid = w.uid
         ORDER BY d.received_at DESC, d.uid DESC LIMIT 1) AS last_delivery_at
  FROM webhooks w LEFT JOIN team_secrets s ON s.team_uid = w.team_uid AND s.name = w.secret_name`;

export type WebhookRow = {
  uid: string;
  team_uid: string;
  factory_uid: string;
  name: string;
  auth_mode: AuthMode;
  signature_scheme: SignatureScheme | null;
  signature_header: string | null;
  signature_prefix: string | null;
  secret_name: string | null;
  delivery_id_header: string | null;
  enabled: boolean;
  management: Management;
  version: number;
  created_at: Date;
  updated_at: Date;
  secret_set: boolean;
  last_delivery_at: Date | null;
};

export const toWebhook = (row: WebhookRow): Webhook => ({
  uid: as<WebhookUid>(row.uid),
  teamUid: as<TeamUid>(row.team_uid),
  factoryUid: as<FactoryUid>(row.factory_uid),
  name: row.name,
  authMode: row.auth_mode,
  signatureScheme: row.signature_scheme ?? undefined,
  signatureHeader: row.signature_header ?? undefined,
  signaturePrefix: row.signature_prefix ?? undefined,
  secretName: row.secret_name ?? undefined,
  deliveryIdHeader: row.delivery_id_header ?? undefined,
  enabled: row.enabled,
  isSecretSet: row.secret_set,
  management: row.management,
  version: row.version,
  createdAt: row.created_at,
  updatedAt: row.updated_at,
  lastDeliveryAt: row.last_delivery_at ?? undefined,
});
