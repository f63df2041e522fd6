import type { Database, Sql } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import { as, newUid } from "@millwright/ids";
import type { ScheduleUid } from "../domain/schedule.ts";
import {
  ON_TIME_SECONDS,
  planSlots,
  type ClaimedSlot,
  type Decision,
  type Plan,
  type Slot,
  type SlotState,
} from "../domain/slot.ts";
import type { DatabaseTime } from "./database-time.ts";
import { SCHEDULE_COLUMNS, toSchedule, type ScheduleRow } from "./rows.ts";
import { insertSlots } from "./schedule-store.ts";

type ClaimedRow = ScheduleRow & {
  slot_at: Date;
  state: "due" | "buffered";
  attempts: number;
  is_deleted: boolean;
  is_superseded: boolean;
  is_late: boolean;
  has_buffered: boolean;
};
export type Decided = { readonly slot: Pick<ClaimedSlot, "scheduleUid" | "slotAt">; readonly decision: Decision };

/** The ledger of slots and the queue of undecided slots. All times are of the database's clock. */
export function slotStore(database: Database, time: DatabaseTime) {
  return {
    /**
     * Inserts the slots of every schedule that has come due, and leases those that fire immediately. Replicas may call
     * it concurrently: each skips schedules that another has locked. Returns the number of schedules and the slots to
     * fire.
     */
    plan: (
      limit: number,
      leaseMs: number,
    ): Promise<{ readonly count: number; readonly lease: string; readonly slots: readonly ClaimedSlot[] }> =>
      database.transaction(async (tx) => {
        const lease = newUid();
        const { rows } = await tx.query<ScheduleRow & { now: Date }>(
          `SELECT ${SCHEDULE_COLUMNS}, n.now
             FROM schedules s, (SELECT (${time})::timestamptz(3) AS now) n
            WHERE s.next_slot_at <= n.now
            ORDER BY s.next_slot_at
            LIMIT $1
              FOR UPDATE OF s SKIP LOCKED`,
          [limit],
        );
        const now = rows[0]?.now;
        if (!now) return { count: 0, lease, slots: [] };
        const planned = rows.map((row) => ({ row, plan: planOf(row, now) }));
        const leasedUntil = new Date(now.getTime() + leaseMs);
        // With an overlap policy, slots of a schedule are decided one after the other; claim() enforces it.
        const firesImmediately = ({ overlap_policy: policy }: ScheduleRow): boolean => policy === "allow";
        const inserted = await insertSlots(
          tx,
          planned.flatMap(({ row, plan }) =>
            plan.slots.map((slot) => ({
              ...slot,
              scheduleUid: as<ScheduleUid>(row.uid),
              lease: firesImmediately(row) ? lease : null,
              dueAt: firesImmediately(row) ? leasedUntil : now,
            })),
          ),
          now,
        );
        await tx.query(
          `UPDATE schedules s SET next_slot_at = p.next_slot_at, last_spawn_error = coalesce(p.error, s.last_spawn_error)
             FROM jsonb_to_recordset($1::jsonb) AS p (schedule_uid uuid, next_slot_at timestamptz, error text)
            WHERE s.uid = p.schedule_uid`,
          [
            JSON.stringify(
              planned.map(({ row, plan }) => ({ schedule_uid: row.uid, next_slot_at: plan.next, error: plan.error })),
            ),
          ],
        );
        const isNew = new Set(inserted.map(({ scheduleUid, slotAt }) => `${scheduleUid} ${slotAt.getTime()}`));
        const slots = planned
          .filter(({ row }) => firesImmediately(row))
          .flatMap(({ row, plan }) =>
            plan.slots
              .filter(({ state, slotAt }) => state === "due" && isNew.has(`${row.uid} ${slotAt.getTime()}`))
              .map(({ slotAt }): ClaimedSlot => ({
                scheduleUid: as<ScheduleUid>(row.uid),
                slotAt,
                state: "due",
                attempts: 1,
                schedule: toSchedule(row),
                isDeleted: false,
                isSuperseded: false,
                isLate: false,
                hasBuffered: false,
              })),
          );
        return { count: rows.length, lease, slots };
      }),

    /**
     * Leases undecided slots without a lease. With an overlap policy, one slot per schedule at a time, across all
     * replicas.
     */
    claim: (
      limit: number,
      leaseMs: number,
    ): Promise<{ readonly lease: string; readonly slots: readonly ClaimedSlot[] }> =>
      database.transaction(async (tx) => {
        const lease = newUid();
        const { rows: chosen } = await tx.query<{
          schedule_uid: string;
          slot_at: Date;
          is_serial: boolean;
          is_leased: boolean;
        }>(
          `SELECT x.schedule_uid, x.slot_at, s.overlap_policy <> 'allow' AS is_serial,
                  EXISTS (SELECT 1 FROM slots o
                           WHERE o.schedule_uid = x.schedule_uid AND o.slot_at <> x.slot_at
                             AND o.lease IS NOT NULL AND o.due_at > ${time}) AS is_leased
             FROM slots x JOIN schedules s ON s.uid = x.schedule_uid
            WHERE x.state IN ('due', 'buffered') AND x.due_at <= ${time}
            ORDER BY x.due_at, x.slot_at
            LIMIT $1
              FOR UPDATE OF x, s SKIP LOCKED`,
          [limit],
        );
        const claimed = new Set<string>();
        const keys = chosen.filter(({ schedule_uid: uid, is_serial: isSerial, is_leased: isLeased }) => {
          if (isSerial && (isLeased || claimed.has(uid))) return false;
          claimed.add(uid);
          return true;
        });
        return { lease, slots: keys.length === 0 ? [] : await leaseSlots(tx, time, keys, lease, leaseMs) };
      }),

    /**
     * Stores the decisions made under a lease. A slot that created a run becomes fired even if another replica has
     * leased it since.
     */
    settle: (lease: string, decided: readonly Decided[]): Promise<void> =>
      database.transaction((tx) => settle(tx, time, lease, decided)),

    /**
     * Returns how long until the next schedule comes due or an undecided slot is checked; undefined if nothing is
     * planned.
     */
    async waitMs(): Promise<number | undefined> {
      const { rows } = await database.sql.query<{ ms: number | null }>(
        `SELECT (extract(epoch FROM least(
                  (SELECT min(next_slot_at) FROM schedules WHERE next_slot_at IS NOT NULL),
                  (SELECT min(due_at) FROM slots WHERE state IN ('due', 'buffered'))) - ${time}) * 1000)::float8 AS ms`,
      );
      return rows[0]?.ms ?? undefined;
    },

    /**
     * Deletes slots that were decided more than `days` ago, at most `limit` per call, except the newest of each
     * existing schedule: it marks where new slots begin. Returns the number of deleted slots.
     */
    async prune(days: number, limit: number): Promise<number> {
      const { rows } = await database.sql.query<{ count: number }>(
        `WITH old AS (
           DELETE FROM slots WHERE (schedule_uid, slot_at) IN (
             SELECT x.schedule_uid, x.slot_at FROM slots x JOIN schedules s ON s.uid = x.schedule_uid
              WHERE x.decided_at < ${time} - $1 * interval '1 day'
                AND (s.deleted_at IS NOT NULL
                     OR EXISTS (SELECT 1 FROM slots n WHERE n.schedule_uid = x.schedule_uid AND n.slot_at > x.slot_at))
              LIMIT $2)
           RETURNING 1)
         SELECT count(*) AS count FROM old`,
        [days, limit],
      );
      return rows[0]!.count;
    },

    /** Lists slots, newest first. */
    async list(
      scheduleUid: ScheduleUid,
      { states, before, limit }: { states: readonly SlotState[]; before?: Date; limit: number },
    ): Promise<Slot[]> {
      const { rows } = await database.sql.query<{
        slot_at: Date;
        state: SlotState;
        reason: string | null;
        message: string | null;
        run_uid: string | null;
        decided_at: Date | null;
      }>(
        `SELECT slot_at, state, reason, message, run_uid, decided_at FROM slots
          WHERE schedule_uid = $1
            AND (cardinality($2::text[]) = 0 OR state = ANY ($2::text[]))
            AND ($3::timestamptz IS NULL OR slot_at < $3)
          ORDER BY slot_at DESC
          LIMIT $4`,
        [scheduleUid, states, before ?? null, limit],
      );
      return rows.map((row) => ({
        slotAt: row.slot_at,
        state: row.state,
        reason: row.reason,
        message: row.message,
        runUid: row.run_uid,
        decidedAt: row.decided_at,
      }));
    },
  };
}

/**
 * Plans a schedule. A stored rule that is now invalid must not block other schedules: it has no next slot and reports
 * the error.
 */
function planOf(row: ScheduleRow, now: Date): Plan & { readonly error: string | null } {
  try {
    return {
      ...planSlots(
        { cronSchedule: row.cron_schedule, timeZone: row.time_zone, catchUpSeconds: row.catch_up_seconds },
        row.next_slot_at!,
        now,
      ),
      error: null,
    };
  } catch (error) {
    if (!isDomainError(error) && !(error instanceof RangeError)) throw error;
    return { slots: [], next: null, error: error.message };
  }
}

async function leaseSlots(
  tx: Sql,
  time: DatabaseTime,
  keys: readonly { schedule_uid: string; slot_at: Date }[],
  lease: string,
  leaseMs: number,
): Promise<ClaimedSlot[]> {
  const { rows } = await tx.query<ClaimedRow>(
    `UPDATE slots x SET lease = $2, due_at = ${time} + $3 * interval '1 millisecond', attempts = x.attempts + 1
       FROM jsonb_to_recordset($1::jsonb) AS k (schedule_uid uuid, slot_at timestamptz), schedules s
      WHERE x.schedule_uid = k.schedule_uid AND x.slot_at = k.slot_at AND s.uid = x.schedule_uid
     RETURNING ${SCHEDULE_COLUMNS}, x.slot_at, x.state, x.attempts, s.deleted_at IS NOT NULL AS is_deleted,
               EXISTS (SELECT 1 FROM slots o WHERE o.schedule_uid = x.schedule_uid AND o.slot_at > x.slot_at) AS is_superseded,
               EXISTS (SELECT 1 FROM slots o
                        WHERE o.schedule_uid = x.schedule_uid AND o.slot_at <> x.slot_at AND o.state = 'buffered') AS has_buffered,
               x.slot_at < ${time} - GREATEST(s.catch_up_seconds, ${ON_TIME_SECONDS}) * interval '1 second' AS is_late`,
    [JSON.stringify(keys), lease, leaseMs],
  );
  return rows.map((row) => ({
    scheduleUid: as<ScheduleUid>(row.uid),
    slotAt: row.slot_at,
    state: row.state,
    attempts: row.attempts,
    schedule: toSchedule(row),
    isDeleted: row.is_deleted,
    isSuperseded: row.is_superseded,
    isLate: row.is_late,
    hasBuffered: row.has_buffered,
  }));
}

async function settle(tx: Sql, time: DatabaseTime, lease: string, decided: readonly Decided[]): Promise<void> {
  const rows = decided.map(({ slot, decision }) => ({
    schedule_uid: slot.scheduleUid,
    slot_at: slot.slotAt,
    state: decision.state,
    reason: "reason" in decision ? decision.reason : null,
    message: "message" in decision ? (decision.message ?? null) : null,
    run_uid: "runUid" in decision ? decision.runUid : null,
    after_ms: "afterMs" in decision ? decision.afterMs : null,
  }));
  // Joined by key, without a condition on state that an index could serve: nearly all slots have fired, so the planner would
  // expect one undecided slot and compare every undecided slot with every decision.
  await tx.query(
    `UPDATE slots x SET state = d.state, reason = d.reason, message = d.message, run_uid = d.run_uid, lease = NULL,
            due_at = CASE WHEN d.after_ms IS NULL THEN NULL ELSE ${time} + d.after_ms * interval '1 millisecond' END,
            decided_at = CASE WHEN d.after_ms IS NULL THEN ${time} END
       FROM jsonb_to_recordset($1::jsonb)
         AS d (schedule_uid uuid, slot_at timestamptz, state text, reason text, message text, run_uid uuid, after_ms float8)
      WHERE x.schedule_uid = d.schedule_uid AND x.slot_at = d.slot_at
        AND CASE WHEN x.lease = $2 OR d.state = 'fired' THEN x.state <> 'fired' END`,
    [JSON.stringify(rows), lease],
  );
  const failed = decided.flatMap(({ slot, decision }) =>
    decision.state === "skipped" && decision.reason === "spawn_failed"
      ? [{ schedule_uid: slot.scheduleUid, message: decision.message }]
      : [],
  );
  const fired = decided
    .filter(({ decision }) => decision.state === "fired")
    .map(({ slot }) => ({ schedule_uid: slot.scheduleUid, message: null }));
  await tx.query(
    `UPDATE schedules s SET last_spawn_error = f.message
       FROM jsonb_to_recordset($1::jsonb) AS f (schedule_uid uuid, message text)
      WHERE s.uid = f.schedule_uid AND s.last_spawn_error IS DISTINCT FROM f.message`,
    [JSON.stringify([...failed, ...fired])],
  );
}

/** Makes a slot fired, whatever its state was. */
async function recordRun(
  tx: Sql,
  { scheduleUid, slotAt, runUid, now }: { scheduleUid: string; slotAt: Date; runUid: string; now: Date },
): Promise<void> {
  await tx.query(
    `UPDATE slots
        SET state = 'fired', run_uid = $3, reason = NULL, message = NULL, lease = NULL, due_at = NULL, decided_at = $4
      WHERE schedule_uid = $1 AND slot_at = $2 AND state <> 'fired'`,
    [scheduleUid, slotAt, runUid, now],
  );
}

/** Records runs that slots created; most of these slots are fired already. */
export async function recordRuns(
  tx: Sql,
  runs: readonly { scheduleUid: string; slotAt: Date; runUid: string; now: Date }[],
): Promise<void> {
  const { rows } = await tx.query<{ index: number }>(
    `SELECT r.index
       FROM jsonb_to_recordset($1::jsonb) AS r (index integer, schedule_uid uuid, slot_at timestamptz)
      WHERE (SELECT x.state <> 'fired' FROM slots x WHERE x.schedule_uid = r.schedule_uid AND x.slot_at = r.slot_at)
      ORDER BY r.index`,
    [JSON.stringify(runs.map((run, index) => ({ index, schedule_uid: run.scheduleUid, slot_at: run.slotAt })))],
  );
  for (const { index } of rows) await recordRun(tx, runs[index]!);
}

/** Records the end of a slot's run: buffered slots become due, and a success updates the schedule. */
export async function recordRunEnd(
  tx: Sql,
  time: DatabaseTime,
  { runUid, succeededAt }: { runUid: string; succeededAt: Date | null },
): Promise<void> {
  const { rows } = await tx.query<{ schedule_uid: string }>("SELECT schedule_uid FROM slots WHERE run_uid = $1", [
    runUid,
  ]);
  if (!rows[0]) return;
  const { schedule_uid: uid } = rows[0];
  if (succeededAt)
    await tx.query("UPDATE schedules SET last_ran_at = greatest(last_ran_at, $2) WHERE uid = $1", [uid, succeededAt]);
  await tx.query(
    `UPDATE slots SET due_at = least(due_at, ${time}) WHERE schedule_uid = $1 AND state = 'buffered' AND lease IS NULL`,
    [uid],
  );
}
