import type { Database, Sql } from "@millwright/database";
import { appendEvents, type NewEvent } from "@millwright/events";
import { as, newUid } from "@millwright/ids";
import {
  advanceSlots,
  reconcile,
  type PassedSlots,
  type ScheduledAutomation,
  type TriggerSchedule,
  type TriggerScheduleUid,
} from "../domain/trigger-schedule.ts";
import { readTime, type DatabaseTime } from "./database-time.ts";

type Row = {
  uid: string;
  automation_uid: string;
  factory_uid: string;
  team_uid: string;
  name: string;
  cron: string;
  next_slot_at: Date | null;
  last_slot_at: Date | null;
  version: number;
};
type BuildEvent = (schedule: TriggerSchedule, passed: PassedSlots) => NewEvent;

const COLUMNS =
  "t.uid, t.automation_uid, t.factory_uid, t.team_uid, t.name, t.cron, t.next_slot_at, t.last_slot_at, t.version";

/**
 * The scheduled triggers of automations. A slot fires exactly once: its event is written in the transaction that
 * advances the schedule.
 */
export function triggerStore(database: Database, time: DatabaseTime, buildEvent: BuildEvent) {
  return {
    /**
     * Fires the due slots of at most `limit` schedules that no other replica has locked. Returns the number of
     * schedules.
     */
    fireDue: (limit: number): Promise<number> =>
      database.transaction(async (tx) => {
        const { rows } = await tx.query<Row & { now: Date }>(
          `SELECT ${COLUMNS}, n.now FROM trigger_schedules t, (SELECT (${time})::timestamptz(3) AS now) n
            WHERE t.next_slot_at <= n.now ORDER BY t.next_slot_at LIMIT $1 FOR UPDATE OF t SKIP LOCKED`,
          [limit],
        );
        if (rows[0]) await save(tx, await fire(tx, rows.map(toTrigger), rows[0].now, buildEvent));
        return rows.length;
      }),

    /** Returns how long until the next schedule comes due; undefined if there is none. */
    async waitMs(): Promise<number | undefined> {
      const { rows } = await database.sql.query<{ ms: number | null }>(
        `SELECT (extract(epoch FROM min(next_slot_at) - ${time}) * 1000)::float8 AS ms FROM trigger_schedules WHERE next_slot_at IS NOT NULL`,
      );
      return rows[0]?.ms ?? undefined;
    },

    /**
     * Replaces the schedules of an automation in the consumer's transaction. Slots that came due before the change
     * still fire.
     */
    async applyAutomation(tx: Sql, automation: ScheduledAutomation, changedAt: Date): Promise<void> {
      const { rows } = await tx.query<Row>(
        `SELECT ${COLUMNS} FROM trigger_schedules t WHERE automation_uid = $1 ORDER BY uid FOR UPDATE`,
        [automation.automationUid],
      );
      const now = await readTime(tx, time);
      const since = changedAt < now ? changedAt : now; // the clock of another database may be ahead
      const advanced = await fire(tx, rows.map(toTrigger), since, buildEvent);
      await save(tx, reconcile(advanced, automation, since, newUid<TriggerScheduleUid>));
    },
  };
}

export type TriggerStore = ReturnType<typeof triggerStore>;

/** Deletes the schedules of a deleted automation or factory. */
export async function deleteTriggers(tx: Sql, by: { automationUid: string } | { factoryUid: string }): Promise<void> {
  const [column, uid] = "automationUid" in by ? ["automation_uid", by.automationUid] : ["factory_uid", by.factoryUid];
  await tx.query(`DELETE FROM trigger_schedules WHERE ${column} = $1`, [uid]);
}

/** Writes the events of the slots that have passed by `now`; returns every schedule as it is afterwards. */
async function fire(
  tx: Sql,
  schedules: readonly TriggerSchedule[],
  now: Date,
  buildEvent: BuildEvent,
): Promise<TriggerSchedule[]> {
  const events: NewEvent[] = [];
  const advanced = schedules.map((schedule) => {
    const due = advanceSlots(schedule, now);
    if (due) events.push(buildEvent(due.next, due.passed));
    return due?.next ?? schedule;
  });
  await appendEvents(tx, events);
  return advanced;
}

async function save(tx: Sql, schedules: readonly TriggerSchedule[]): Promise<void> {
  await tx.query(
    `INSERT INTO trigger_schedules (uid, automation_uid, factory_uid, team_uid, name, cron, next_slot_at, last_slot_at, version)
       SELECT * FROM jsonb_to_recordset($1::jsonb) AS n (uid uuid, automation_uid uuid, factory_uid uuid, team_uid uuid, name text,
              cron text, next_slot_at timestamptz, last_slot_at timestamptz, version integer)
     ON CONFLICT (uid) DO UPDATE SET next_slot_at = excluded.next_slot_at, last_slot_at = excluded.last_slot_at, version = excluded.version`,
    [
      JSON.stringify(
        schedules.map((schedule): Row => ({
          uid: schedule.uid,
          automation_uid: schedule.automationUid,
          factory_uid: schedule.factoryUid,
          team_uid: schedule.teamUid,
          name: schedule.name,
          cron: schedule.cron,
          next_slot_at: schedule.nextSlotAt,
          last_slot_at: schedule.lastSlotAt,
          version: schedule.version,
        })),
      ),
    ],
  );
}

const toTrigger = (row: Row): TriggerSchedule => ({
  uid: as<TriggerScheduleUid>(row.uid),
  automationUid: row.automation_uid,
  factoryUid: row.factory_uid,
  teamUid: row.team_uid,
  name: row.name,
  cron: row.cron,
  nextSlotAt: row.next_slot_at,
  lastSlotAt: row.last_slot_at,
  version: row.version,
});
