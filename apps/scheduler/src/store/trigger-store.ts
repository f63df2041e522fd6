import type { Database, Sql } from "@millwright/database";
import { appendEvents, type NewEvent } from "@millwright/events";
import { as, newUid } from "@millwright/ids";
import {
  reconcile,
  takeSlots,
  type ScheduledAutomation,
  type TakenSlots,
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
  next_slot: Date | null;
  last_slot: Date | null;
  version: number;
};
type Fact = (schedule: TriggerSchedule, taken: TakenSlots) => NewEvent;

const COLUMNS =
  "t.uid, t.automation_uid, t.factory_uid, t.team_uid, t.name, t.cron, t.next_slot, t.last_slot, t.version";

/** The scheduled triggers of automations. That a slot fires once rests on one transaction: its fact is written as the schedule moves on. */
export function triggerStore(database: Database, time: DatabaseTime, fact: Fact) {
  return {
    /** Takes the slots that are over of at most `limit` schedules that no other replica has at hand. Answers how many schedules it was. */
    fireDue: (limit: number): Promise<number> =>
      database.transaction(async (tx) => {
        const { rows } = await tx.query<Row & { now: Date }>(
          `SELECT ${COLUMNS}, n.now FROM trigger_schedules t, (SELECT (${time})::timestamptz(3) AS now) n
            WHERE t.next_slot <= n.now ORDER BY t.next_slot LIMIT $1 FOR UPDATE OF t SKIP LOCKED`,
          [limit],
        );
        if (rows[0]) await save(tx, await fire(tx, rows.map(toTrigger), rows[0].now, fact));
        return rows.length;
      }),

    /** How long until the next schedule comes due; undefined: none will. */
    async waitMs(): Promise<number | undefined> {
      const { rows } = await database.sql.query<{ ms: number | null }>(
        `SELECT (extract(epoch FROM min(next_slot) - ${time}) * 1000)::float8 AS ms FROM trigger_schedules WHERE next_slot IS NOT NULL`,
      );
      return rows[0]?.ms ?? undefined;
    },

    /** Makes the schedules of an automation what it says since then, in the transaction that hears of it. What came due before fires still. */
    async follow(tx: Sql, automation: ScheduledAutomation, saidAt: Date): Promise<void> {
      const { rows } = await tx.query<Row>(
        `SELECT ${COLUMNS} FROM trigger_schedules t WHERE automation_uid = $1 ORDER BY uid FOR UPDATE`,
        [automation.automationUid],
      );
      const now = await readTime(tx, time);
      const since = saidAt < now ? saidAt : now; // the clock of another database may be ahead
      await save(
        tx,
        reconcile(await fire(tx, rows.map(toTrigger), since, fact), automation, since, newUid<TriggerScheduleUid>),
      );
    },
  };
}

/** The schedules of automations that are no more, nor will be. */
export async function forgetTriggers(tx: Sql, by: { automationUid: string } | { factoryUid: string }): Promise<void> {
  const [column, uid] = "automationUid" in by ? ["automation_uid", by.automationUid] : ["factory_uid", by.factoryUid];
  await tx.query(`DELETE FROM trigger_schedules WHERE ${column} = $1`, [uid]);
}

/** Writes the facts of the slots that are over by `now`, and answers the schedules as they are afterwards, also those that had none. */
async function fire(tx: Sql, schedules: readonly TriggerSchedule[], now: Date, fact: Fact): Promise<TriggerSchedule[]> {
  const facts: NewEvent[] = [];
  const after = schedules.map((schedule) => {
    const due = takeSlots(schedule, now);
    if (due) facts.push(fact(due.next, due.taken));
    return due?.next ?? schedule;
  });
  await appendEvents(tx, facts);
  return after;
}

async function save(tx: Sql, schedules: readonly TriggerSchedule[]): Promise<void> {
  await tx.query(
    `INSERT INTO trigger_schedules (uid, automation_uid, factory_uid, team_uid, name, cron, next_slot, last_slot, version)
     SELECT * FROM jsonb_to_recordset($1::jsonb) AS n (uid uuid, automation_uid uuid, factory_uid uuid, team_uid uuid, name text, cron text, next_slot timestamptz, last_slot timestamptz, version integer)
     ON CONFLICT (uid) DO UPDATE SET next_slot = excluded.next_slot, last_slot = excluded.last_slot, version = excluded.version`,
    [
      JSON.stringify(
        schedules.map((one): Row => ({
          uid: one.uid,
          automation_uid: one.automationUid,
          factory_uid: one.factoryUid,
          team_uid: one.teamUid,
          name: one.name,
          cron: one.cron,
          next_slot: one.nextSlot,
          last_slot: one.lastSlot,
          version: one.version,
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
  nextSlot: row.next_slot,
  lastSlot: row.last_slot,
  version: row.version,
});
