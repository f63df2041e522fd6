import type { Sql } from "@millwright/database";
import type { LedgerEntry } from "../domain/ledger-entry.ts";

export type RunEntries = { readonly runUid: string; readonly teamUid: string; readonly entries: readonly LedgerEntry[] };

const COLUMNS = [
  "team_uid uuid", "factory_uid uuid", "run_uid uuid", "component text", "kind text", "occurred_at timestamptz", "micros bigint",
  "price_version integer", "quantity jsonb", "owner_run_uid uuid", "owner_root_uid uuid", "source text",
  "creator_type text", "creator_uid text", "agent_uid text", "model_id text",
];
const NAMES = COLUMNS.map((column) => column.split(" ")[0]!);
const ADJUSTMENT = NAMES.map((name) => (name === "kind" ? "'adjustment'" : name));

/**
 * Adds entries to the ledger; those that it has are left as they are. What was recorded without a price and has one now is recorded once more as
 * an adjustment. Returns the roots of the trees whose spend may have changed.
 */
export async function addEntries(tx: Sql, runs: readonly RunEntries[]): Promise<string[]> {
  const rows = runs.flatMap(({ runUid, teamUid, entries }) => entries.map((entry) => toRow(runUid, teamUid, entry)));
  if (rows.length === 0) return [];
  const { rows: added } = await tx.query<{ owner_root_uid: string }>(
    `WITH used AS MATERIALIZED (
       SELECT u.*,
              l.source_key IS NOT NULL AS is_known,
              l.micros IS NULL AND u.micros IS NOT NULL AND u.adjustment_key IS NOT NULL AS is_newly_priced
         FROM json_to_recordset($1::json) AS u (source_key uuid, adjustment_key uuid, ${COLUMNS.join(", ")})
         LEFT JOIN ledger_entries l ON l.source_key = u.source_key),
     added AS (
       INSERT INTO ledger_entries (source_key, ${NAMES.join(", ")})
       SELECT source_key, ${NAMES.join(", ")} FROM used WHERE NOT is_known
        UNION ALL
       SELECT adjustment_key, ${ADJUSTMENT.join(", ")} FROM used WHERE is_known AND is_newly_priced
       ON CONFLICT (source_key) DO NOTHING
       RETURNING owner_root_uid)
     SELECT DISTINCT owner_root_uid FROM added`,
    [JSON.stringify(rows)],
  );
  return added.map(({ owner_root_uid }) => owner_root_uid);
}

const toRow = (runUid: string, teamUid: string, { owner, ...entry }: LedgerEntry) => ({
  source_key: entry.sourceKey,
  adjustment_key: entry.adjustmentKey,
  team_uid: teamUid,
  factory_uid: owner.factoryUid,
  run_uid: runUid,
  component: entry.component,
  kind: entry.kind,
  occurred_at: entry.occurredAt,
  micros: entry.micros === undefined ? undefined : String(entry.micros),
  price_version: entry.priceVersion,
  quantity: entry.quantity,
  owner_run_uid: owner.runUid,
  owner_root_uid: owner.rootRunUid,
  source: owner.source,
  creator_type: owner.creatorType,
  creator_uid: owner.creatorUid,
  agent_uid: owner.agentUid,
  model_id: owner.modelId,
});
