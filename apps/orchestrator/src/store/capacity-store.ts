import type { Sql } from "@millwright/database";
import type { LockedRun } from "../domain/run-change.ts";
import type { CapacitySubject } from "../domain/run-transaction.ts";

export type Scope = "agent" | "factory" | "team" | "user";
export type CapacityKey = { readonly scope: Scope; readonly uid: string };

/** Which capacities an execution of a run uses, in lock order (scope, uid). */
export const capacityKeys = (run: CapacitySubject): CapacityKey[] => [
  ...(run.agentUid ? [{ scope: "agent" as const, uid: run.agentUid }] : []),
  ...(run.factoryUid ? [{ scope: "factory" as const, uid: run.factoryUid }] : []),
  { scope: run.owner.type, uid: run.owner.uid },
];

/** Inserts missing capacity rows and adopts changed maxima; writes nothing when nothing changed. Answers whether one is reached. */
export async function ensureCapacity(tx: Sql, subject: CapacitySubject, max: Readonly<Record<"team" | "agent" | "factory", number>>): Promise<boolean> {
  const limits = capacityKeys(subject).map((key) => ({ ...key, max: max[key.scope === "user" ? "team" : key.scope] }));
  const given = [limits.map(({ scope }) => scope), limits.map(({ uid }) => uid), limits.map((limit) => limit.max)];
  const { rows } = await tx.query<{ scope: Scope; uid: string; max: number; state: "missing" | "changed" | "reached" }>(
    `SELECT g.scope, g.uid, g.max, CASE WHEN c.uid IS NULL THEN 'missing' WHEN c.in_use_max <> g.max THEN 'changed' ELSE 'reached' END AS state
       FROM unnest($1::text[], $2::uuid[], $3::integer[]) AS g (scope, uid, max)
       LEFT JOIN capacity c ON c.scope = g.scope AND c.uid = g.uid
      WHERE c.in_use_max IS DISTINCT FROM g.max OR c.in_use >= c.in_use_max ORDER BY g.scope, g.uid`,
    given,
  );
  const outdated = rows.filter(({ state }) => state !== "reached");
  for (const { scope, uid, max: wanted, state } of outdated) {
    const text = state === "changed"
      ? "UPDATE capacity SET in_use_max = $3 WHERE scope = $1 AND uid = $2"
      : "INSERT INTO capacity (scope, uid, in_use_max) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
    await tx.query(text, [scope, uid, wanted]);
  }
  return outdated.length === 0 ? rows.length > 0 : isAtCapacity(tx, limits);
}

/** Gives back one unit of every capacity that each run's execution held, locking in (scope, uid) order. */
export async function releaseCapacity(tx: Sql, runs: readonly Pick<LockedRun, "owner" | "agentUid" | "factoryUid">[]): Promise<void> {
  const counts = new Map<string, CapacityKey & { n: number }>();
  for (const key of runs.flatMap(capacityKeys)) {
    const id = `${key.scope} ${key.uid}`;
    counts.set(id, { ...key, n: (counts.get(id)?.n ?? 0) + 1 });
  }
  for (const [, { scope, uid, n }] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    await tx.query("UPDATE capacity SET in_use = in_use - $3 WHERE scope = $1 AND uid = $2", [scope, uid, n]);
  }
}

/** As seen now, without a lock. */
async function isAtCapacity(sql: Sql, keys: readonly CapacityKey[]): Promise<boolean> {
  const { rowCount } = await sql.query(
    `SELECT 1 FROM capacity c JOIN unnest($1::text[], $2::uuid[]) AS k (scope, uid) ON c.scope = k.scope AND c.uid = k.uid
      WHERE c.in_use >= c.in_use_max LIMIT 1`,
    [keys.map(({ scope }) => scope), keys.map(({ uid }) => uid)],
  );
  return rowCount > 0;
}
