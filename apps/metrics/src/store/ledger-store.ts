import type { Sql } from "@millwright/database";
import { uidOf } from "@millwright/ids";
import type { LedgerEntry } from "../domain/ledger-entry.ts";
import { jsonColumns } from "./json-columns.ts";

export type RunEntries = {
  readonly runUid: string;
  readonly teamUid: string;
  readonly entries: readonly LedgerEntry[];
};

const COLUMNS = jsonColumns({
  team_uid: "uuid",
  factory_uid: "uuid",
  run_uid: "uuid",
  component: "text",
  kind: "text",
  occurred_at: "timestamptz",
  micros: "bigint",
  price_version: "integer",
  quantity: "jsonb",
  owner_run_uid: "uuid",
  owner_root_uid: "uuid",
  source: "text",
  creator_type: "text",
  creator_uid: "text",
  agent_uid: "text",
  model_id: "text",
  corrects: "uuid",
  unpriced_change: "smallint",
});

/**
 * Records entries. A new one is inserted; one that was recorded with another price is corrected by an adjustment; any
 * other changes nothing. A charge of 0 is not recorded. The caller has locked the factories. Returns the roots of the
 * trees whose spend may have changed.
 */
export async function addEntries(tx: Sql, runs: readonly RunEntries[]): Promise<string[]> {
  const rows = runs.flatMap(({ runUid, teamUid, entries }) => entries.map((entry) => ({ runUid, teamUid, entry })));
  const states = await changedEntries(
    tx,
    rows.map(({ entry }) => entry),
  );
  const added = rows.flatMap(({ runUid, teamUid, entry }) => {
    const state = states.get(entry.sourceKey);
    if (state === undefined || (!state.isRecorded && isFreeCharge(entry))) return [];
    const row = toRow(runUid, teamUid, entry);
    return [state.isRecorded ? { ...row, ...correctionOf(entry, state) } : row];
  });
  if (added.length === 0) return [];
  await tx.query(
    `INSERT INTO ledger_entries (source_key, ${COLUMNS.list()})
     SELECT source_key, ${COLUMNS.list()}
       FROM json_to_recordset($1::json) AS entry (source_key uuid, ${COLUMNS.definitions})
     ON CONFLICT (source_key) DO NOTHING`,
    [JSON.stringify(added)],
  );
  return [...new Set(added.map(({ owner_root_uid }) => owner_root_uid))];
}

const isFreeCharge = ({ kind, micros }: LedgerEntry): boolean => kind === "platform_charge" && micros === 0n;

/** What is recorded of an entry with all its corrections. `micros`: 0 if it has no price. */
type RecordedEntry = {
  readonly isRecorded: boolean;
  readonly isUnpriced: boolean;
  readonly micros: bigint;
  readonly correctionCount: number;
};

const correctionOf = (entry: LedgerEntry, recorded: RecordedEntry) => ({
  source_key: uidOf(`correction ${entry.sourceKey} ${recorded.correctionCount + 1}`),
  kind: "adjustment",
  corrects: entry.sourceKey,
  micros: String((entry.micros ?? 0n) - recorded.micros),
  unpriced_change: Number(entry.micros === undefined) - Number(recorded.isUnpriced),
});

/**
 * Returns what is recorded of the entries that are missing or have another price; most entries of a run that is read
 * again are neither.
 */
async function changedEntries(tx: Sql, entries: readonly LedgerEntry[]): Promise<Map<string, RecordedEntry>> {
  if (entries.length === 0) return new Map();
  const { rows } = await tx.query<{
    source_key: string;
    is_recorded: boolean;
    is_unpriced: boolean;
    micros: string;
    corrections: string;
  }>(
    `SELECT wanted.source_key,
            l.source_key IS NOT NULL AS is_recorded,
            now_recorded.is_unpriced,
            now_recorded.micros::text,
            now_recorded.corrections::text
       FROM unnest($1::uuid[], $2::bigint[]) AS wanted (source_key, micros)
       LEFT JOIN ledger_entries l ON l.source_key = wanted.source_key
      CROSS JOIN LATERAL (SELECT (l.micros IS NULL)::integer + coalesce(sum(c.unpriced_change), 0) > 0 AS is_unpriced,
                                 coalesce(l.micros, 0) + coalesce(sum(c.micros), 0) AS micros,
                                 count(*) AS corrections
                            FROM ledger_entries c
                           WHERE c.corrects = wanted.source_key) now_recorded
      WHERE l.source_key IS NULL
         OR wanted.micros IS DISTINCT FROM CASE WHEN now_recorded.is_unpriced THEN NULL ELSE now_recorded.micros END`,
    [entries.map(({ sourceKey }) => sourceKey), entries.map(({ micros }) => micros?.toString() ?? null)],
  );
  return new Map(
    rows.map((row) => [
      row.source_key,
      {
        isRecorded: row.is_recorded,
        isUnpriced: row.is_unpriced,
        micros: BigInt(row.micros),
        correctionCount: Number(row.corrections),
      },
    ]),
  );
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
