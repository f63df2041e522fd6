import type { Sql } from "@millwright/database";
import type { LedgerEntry } from "../domain/ledger-entry.ts";

export type RunEntries = {
  readonly runUid: string;
  readonly teamUid: string;
  readonly entries: readonly LedgerEntry[];
};

const COLUMNS = [
  "team_uid uuid",
  "factory_uid uuid",
  "run_uid uuid",
  "component text",
  "kind text",
  "occurred_at timestamptz",
  "micros bigint",
  "price_version integer",
  "quantity jsonb",
  "owner_run_uid uuid",
  "owner_root_uid uuid",
  "source text",
  "creator_type text",
  "creator_uid text",
  "agent_uid text",
  "model_id text",
];
const NAMES = COLUMNS.map((column) => column.split(" ")[0]!);

/**
 * Adds entries to the ledger; those that it has are left as they are. What was recorded without a price and has one now is recorded once more as
 * an adjustment. The caller has locked the factories. Returns the roots of the trees whose spend may have changed.
 */
export async function addEntries(tx: Sql, runs: readonly RunEntries[]): Promise<string[]> {
  const rows = runs.flatMap(({ runUid, teamUid, entries }) => entries.map((entry) => ({ runUid, teamUid, entry })));
  const states = await openStates(
    tx,
    rows.map(({ entry }) => entry.sourceKey),
  );
  const added = rows.flatMap(({ runUid, teamUid, entry }) => {
    const state = states.get(entry.sourceKey);
    if (state === "missing") return [toRow(runUid, teamUid, entry)];
    if (state === undefined || entry.micros === undefined || entry.adjustmentKey === undefined) return [];
    return [{ ...toRow(runUid, teamUid, entry), source_key: entry.adjustmentKey, kind: "adjustment" }];
  });
  if (added.length === 0) return [];
  await tx.query(
    `INSERT INTO ledger_entries (source_key, ${NAMES.join(", ")})
     SELECT source_key, ${NAMES.join(", ")}
       FROM json_to_recordset($1::json) AS entry (source_key uuid, ${COLUMNS.join(", ")})
     ON CONFLICT (source_key) DO NOTHING`,
    [JSON.stringify(added)],
  );
  return [...new Set(added.map(({ owner_root_uid }) => owner_root_uid))];
}

/** Returns which entries are missing and which have no price; most entries of a run that is read again are neither, and are not sent again. */
async function openStates(tx: Sql, sourceKeys: readonly string[]): Promise<Map<string, "missing" | "unpriced">> {
  if (sourceKeys.length === 0) return new Map();
  const { rows } = await tx.query<{ source_key: string; is_missing: boolean }>(
    `SELECT wanted.source_key, l.source_key IS NULL AS is_missing
       FROM unnest($1::uuid[]) AS wanted (source_key)
       LEFT JOIN ledger_entries l ON l.source_key = wanted.source_key
      WHERE l.micros IS NULL`,
    [sourceKeys],
  );
  return new Map(rows.map(({ source_key, is_missing }) => [source_key, is_missing ? "missing" : "unpriced"]));
}

const toRow = (runUid: string, teamUid: string, { owner, ...entry }: LedgerEntry) => ({
  source_key: entry.sourceKey,
  team_uid: teamUid,
  factory_uid: owner.factoryUid,
  run_uid: runUid,
  component: entry.component,
  kind: entry.kind as string,
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
