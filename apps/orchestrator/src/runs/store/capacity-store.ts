import { sendTo, type Sql } from "@millwright/database";
import { topics } from "../../storage/wakeups.ts";
import type { LockedRun } from "../domain/run-change.ts";
import { type CapacityDefaults, type QueueSettings, type ScopeSettings } from "../../catalog/domain/queue-settings.ts";
import type { CapacitySubject } from "../domain/run-record.ts";

export type Scope = "agent" | "factory" | "team" | "user";
export type CapacityKey = { readonly scope: Scope; readonly uid: string };

/** Returns the capacities that an execution of a run uses, in lock order (scope, uid). */
export const capacityKeys = (run: CapacitySubject): CapacityKey[] => [
  ...(run.agentUid ? [{ scope: "agent" as const, uid: run.agentUid }] : []),
  ...(run.factoryUid ? [{ scope: "factory" as const, uid: run.factoryUid }] : []),
  { scope: run.owner.type, uid: run.owner.uid },
];

/**
 * Inserts missing capacity rows and stores newer settings; writes nothing if nothing changed. Returns whether a maximum
 * is reached. Reads immediately, but writes only after `before`, because lanes are locked before capacities.
 */
export async function ensureCapacity(
  tx: Sql,
  subject: CapacitySubject,
  settings: ScopeSettings,
  defaults: CapacityDefaults,
  before: Promise<unknown>,
): Promise<boolean> {
  const keys = capacityKeys(subject);
  const wanted = keys.map(({ scope }) => settings[scope === "user" ? "team" : scope]);
  const { rows } = await tx.query<{ n: number; is_outdated: boolean }>(
    `SELECT g.n::integer - 1 AS n, c.uid IS NULL OR (c.in_use_max, c.paused, c.weight, c.priority) <> (g.max, g.paused, g.weight, g.priority) AS is_outdated
       FROM jsonb_to_recordset($1::jsonb) AS g (n bigint, scope text, uid uuid, max integer, paused boolean, weight float8, priority integer, version bigint)
       LEFT JOIN capacity c ON c.scope = g.scope AND c.uid = g.uid
      WHERE c.uid IS NULL OR c.in_use >= c.in_use_max
         OR (g.version >= c.settings_version AND (c.in_use_max, c.paused, c.weight, c.priority) <> (g.max, g.paused, g.weight, g.priority)) ORDER BY g.n`,
    [JSON.stringify(keys.map(({ scope, uid }, n) => capacityRow(n + 1, scope, uid, wanted[n]!, defaults)))],
  );
  const outdated = rows.filter((row) => row.is_outdated);
  if (outdated.length > 0) await before;
  for (const { n } of outdated) await putSettings(tx, keys[n]!, wanted[n]!, defaults);
  return outdated.length === 0 ? rows.length > 0 : isAtCapacity(tx, keys);
}

/**
 * Passed as JSON, because PostgreSQL plans statements with array parameters on each execution, which takes longer than
 * executing them.
 */
const capacityRow = (n: number, scope: Scope, uid: string, settings: QueueSettings, defaults: CapacityDefaults) => ({
  n,
  scope,
  uid,
  max: maxOf(scope, settings, defaults),
  paused: settings.isPaused,
  weight: settings.weight,
  priority: settings.priority,
  version: settings.version,
});

const maxOf = (scope: Scope, { concurrencyLimit }: QueueSettings, defaults: CapacityDefaults): number =>
  concurrencyLimit || defaults[scope === "user" ? "team" : scope];

/**
 * Stores the settings of a scope unless newer ones are stored. Notifies the queue, because the settings may let waiting
 * executions start.
 */
export async function putSettings(
  tx: Sql,
  { scope, uid }: CapacityKey,
  settings: QueueSettings,
  defaults: CapacityDefaults,
): Promise<void> {
  const { isPaused, weight, priority, version } = settings;
  await tx.query(
    `INSERT INTO capacity (scope, uid, in_use_max, paused, weight, priority, settings_version) VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (scope, uid) DO UPDATE SET in_use_max = excluded.in_use_max, paused = excluded.paused, weight = excluded.weight,
            priority = excluded.priority, settings_version = excluded.settings_version
      WHERE capacity.settings_version <= excluded.settings_version`,
    [scope, uid, maxOf(scope, settings, defaults), isPaused, weight, priority, version],
  );
  tx.announce?.(topics.work);
}

/** Releases one unit of every capacity that each run's execution used, locking in (scope, uid) order. */
export async function releaseCapacity(
  tx: Sql,
  runs: readonly Pick<LockedRun, "owner" | "agentUid" | "factoryUid">[],
): Promise<void> {
  const counts = new Map<string, CapacityKey & { n: number }>();
  for (const key of runs.flatMap(capacityKeys)) {
    const id = `${key.scope} ${key.uid}`;
    counts.set(id, { ...key, n: (counts.get(id)?.n ?? 0) + 1 });
  }
  for (const [, { scope, uid, n }] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    await sendTo(tx, "UPDATE capacity SET in_use = in_use - $3 WHERE scope = $1 AND uid = $2", [scope, uid, n]);
  }
}

/** Whether a maximum is reached at the moment, read without a lock. */
async function isAtCapacity(sql: Sql, keys: readonly CapacityKey[]): Promise<boolean> {
  const { rowCount } = await sql.query(
    `SELECT 1 FROM capacity c JOIN unnest($1::text[], $2::uuid[]) AS k (scope, uid) ON c.scope = k.scope AND c.uid = k.uid
      WHERE c.in_use >= c.in_use_max LIMIT 1`,
    [keys.map(({ scope }) => scope), keys.map(({ uid }) => uid)],
  );
  return rowCount > 0;
}
