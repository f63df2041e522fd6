import type { Sql } from "@millwright/database";
import { canonicalJson } from "@millwright/json";
import type { DefinedWebhook } from "../domain/defined-webhook.ts";
import type { Webhook } from "../domain/webhook.ts";
import { insertWebhook, lockFactory, SELECT_WEBHOOKS, toWebhook, type WebhookRow } from "./webhook-store.ts";

export type Stage = {
  readonly factoryUid: string;
  readonly teamUid: string;
  readonly version: number;
  readonly webhooks: readonly DefinedWebhook[];
};

/** Stores an inactive version; replaces an earlier stage of the same version. */
export async function saveStage(sql: Sql, { factoryUid, teamUid, version, webhooks }: Stage, now: Date): Promise<void> {
  await sql.query(
    `INSERT INTO definition_stages (factory_uid, version, team_uid, webhooks, created_at) VALUES ($1, $2, $3, $4::jsonb, $5)
     ON CONFLICT (factory_uid, version) DO UPDATE SET webhooks = excluded.webhooks, created_at = excluded.created_at`,
    [factoryUid, version, teamUid, JSON.stringify(webhooks), now],
  );
}

export async function dropStage(sql: Sql, factoryUid: string, version: number): Promise<void> {
  await sql.query("DELETE FROM definition_stages WHERE factory_uid = $1 AND version = $2", [factoryUid, version]);
}

/**
 * Returns which of these texts are not the uid of a webhook that the factory has, if files define webhooks of these
 * names.
 */
export async function absentWebhooks(
  sql: Sql,
  factoryUid: string,
  uids: readonly string[],
  fileNames: readonly string[],
): Promise<Set<string>> {
  const { rows } = await sql.query<{ uid: string }>(
    `SELECT uid FROM webhooks
      WHERE factory_uid = $1 AND uid::text = ANY ($2) AND deleted_at IS NULL AND (management = 'live' OR name = ANY ($3))`,
    [factoryUid, uids, fileNames],
  );
  const known = new Set(rows.map(({ uid }) => uid));
  return new Set(uids.filter((uid) => !known.has(uid)));
}

/** Counts the webhooks of a factory that no file defines. */
export async function countLive(sql: Sql, factoryUid: string): Promise<number> {
  const { rows } = await sql.query<{ count: number }>(
    "SELECT count(*) AS count FROM webhooks WHERE factory_uid = $1 AND deleted_at IS NULL AND management = 'live'",
    [factoryUid],
  );
  return rows[0]!.count;
}

/** Locks a factory's webhooks; returns the active version (0: none) and the staged version, if any. */
export async function lockStage(
  tx: Sql,
  factoryUid: string,
  version: number,
): Promise<{ activeVersion: number; stage: Stage | undefined }> {
  await lockFactory(tx, factoryUid);
  const { rows } = await tx.query<{ version: number }>(
    "SELECT version FROM definition_versions WHERE factory_uid = $1",
    [factoryUid],
  );
  const { rows: stages } = await tx.query<{ team_uid: string; webhooks: DefinedWebhook[] }>(
    "SELECT team_uid, webhooks FROM definition_stages WHERE factory_uid = $1 AND version = $2",
    [factoryUid, version],
  );
  return {
    activeVersion: rows[0]?.version ?? 0,
    stage: stages[0] && { factoryUid, version, teamUid: stages[0].team_uid, webhooks: stages[0].webhooks },
  };
}

/** Records the active version and deletes the stages up to it. */
export async function completeStage(tx: Sql, factoryUid: string, version: number): Promise<void> {
  await tx.query(
    `INSERT INTO definition_versions (factory_uid, version) VALUES ($1, $2)
     ON CONFLICT (factory_uid) DO UPDATE SET version = excluded.version`,
    [factoryUid, version],
  );
  await tx.query("DELETE FROM definition_stages WHERE factory_uid = $1 AND version <= $2", [factoryUid, version]);
}

/** Locks and returns the webhooks that files define, with their files as last projected. */
export async function fileWebhooks(
  tx: Sql,
  factoryUid: string,
): Promise<{ webhook: Webhook; defined: DefinedWebhook | undefined }[]> {
  const { rows } = await tx.query<WebhookRow & { projected_definition: DefinedWebhook | null }>(
    `${SELECT_WEBHOOKS("w.projected_definition")}
      WHERE w.factory_uid = $1 AND w.deleted_at IS NULL AND w.management = 'files'
      ORDER BY w.name
        FOR UPDATE OF w`,
    [factoryUid],
  );
  return rows.map((row) => ({ webhook: toWebhook(row), defined: row.projected_definition ?? undefined }));
}

export async function saveDefined(tx: Sql, webhook: Webhook, defined: DefinedWebhook, isNew: boolean): Promise<void> {
  if (isNew) await insertWebhook(tx, webhook, null);
  await tx.query(
    `UPDATE webhooks
        SET auth_mode = $2, signature_scheme = $3, secret_name = $4, delivery_id_header = $5, enabled = $6,
            projected_definition = $7::jsonb, version = $8, updated_at = $9
      WHERE uid = $1`,
    [
      webhook.uid,
      webhook.authMode,
      webhook.signatureScheme ?? null,
      webhook.secretName ?? null,
      webhook.deliveryIdHeader ?? null,
      webhook.enabled,
      JSON.stringify(defined),
      webhook.version,
      webhook.updatedAt,
    ],
  );
}

export async function deleteDefined(tx: Sql, webhook: Webhook): Promise<void> {
  await tx.query("UPDATE webhooks SET deleted_at = $2, updated_at = $2, version = $3 WHERE uid = $1", [
    webhook.uid,
    webhook.updatedAt,
    webhook.version,
  ]);
}

export async function deleteDefinitions(tx: Sql, factoryUid: string): Promise<void> {
  await tx.query("DELETE FROM definition_stages WHERE factory_uid = $1", [factoryUid]);
  await tx.query("DELETE FROM definition_versions WHERE factory_uid = $1", [factoryUid]);
}

/** Returns whether two definitions of a webhook are equal. */
export const sameDefinition = (a: DefinedWebhook | undefined, b: DefinedWebhook): boolean =>
  canonicalJson(a) === canonicalJson(b);
