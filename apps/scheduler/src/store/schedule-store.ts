import type { Database, Sql } from "@millwright/database";
import { notFound } from "@millwright/errors";
import { appendEvents, type NewEvent } from "@millwright/events";
import type { IdempotentRequest } from "@millwright/idempotency";
import { advancePast, type Owner, type Schedule, type ScheduleUid } from "../domain/schedule.ts";
import { planSlots, type PlannedSlot } from "../domain/slot.ts";
import { readTime, type DatabaseTime } from "./database-time.ts";
import { LISTED_SCHEDULE_COLUMNS, SCHEDULE_COLUMNS, toSchedule, type ScheduleRow } from "./rows.ts";
import { responses } from "./idempotency.ts";

export type Change = { readonly next: Schedule; readonly event: NewEvent };
type Build = (now: Date) => Change;
/** The stored result of an idempotent request; results of earlier releases have no time. */
type CreatedRecord = { readonly uid: ScheduleUid; readonly created_at: string };

/** Queries of schedules; deleted schedules are hidden from every method. */
export function scheduleStore(database: Database, time: DatabaseTime, wakeLoops: () => void) {
  const changing = async <T>(f: (tx: Sql, now: Date) => Promise<T>): Promise<T> => {
    const result = await database.transaction(async (tx) => f(tx, await readTime(tx, time)));
    wakeLoops();
    return result;
  };
  return {
    async find(uid: ScheduleUid): Promise<Schedule | undefined> {
      const { rows } = await database.sql.query<ScheduleRow>(
        `SELECT ${SCHEDULE_COLUMNS} FROM schedules s WHERE uid = $1 AND deleted_at IS NULL`,
        [uid],
      );
      return rows[0] && toSchedule(rows[0]);
    },

    /** Lists schedules by name (case-insensitive), then by uid. */
    async list(owners: readonly Owner[]): Promise<Schedule[]> {
      const { rows } = await database.sql.query<ScheduleRow>(
        `SELECT ${LISTED_SCHEDULE_COLUMNS} FROM schedules s
          WHERE owner_uid = ANY ($1::uuid[])
            AND (owner_type, owner_uid) IN (SELECT * FROM unnest($2::text[], $1::uuid[]))
            AND deleted_at IS NULL
          ORDER BY lower(name) COLLATE "C", uid`,
        [owners.map(({ uid }) => uid), owners.map(({ type }) => type)],
      );
      return rows.map(toSchedule);
    },

    /** Returns the schedule that an earlier identical request created, as it was then. Errors: idempotency_mismatch. */
    async findCreated(build: Build, request: IdempotentRequest): Promise<Schedule | undefined> {
      const now = await readTime(database.sql, time);
      const record = await responses.find<CreatedRecord>(database.sql, request, now);
      return record && asCreated(build, record);
    },

    /**
     * Inserts a schedule with its event; for a repeated request, returns the schedule of the first. Errors:
     * idempotency_mismatch.
     */
    create: (build: Build, request: IdempotentRequest | undefined): Promise<Schedule> =>
      changing(async (tx, now) => {
        const { next, event } = build(now);
        const record = await responses.once<CreatedRecord>(tx, request, now, async () => {
          await tx.query(
            `INSERT INTO schedules (uid, owner_type, owner_uid, name, cron_schedule, time_zone, enabled, prompt, agent_config, agent_uid,
                                    mode, metadata, overlap_policy, catch_up_seconds, updated_by_uid, next_slot_at, updated_at, version,
                                    creator_type, creator_uid, created_at)
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9::jsonb, $10, $11, $12::jsonb, $13, $14, $15, $16, $17, $18, $19, $20, $17)`,
            [next.uid, next.owner.type, next.owner.uid, ...settingsOf(next), next.creator.type, next.creator.uid],
          );
          await appendEvents(tx, [event]);
          return { uid: next.uid, created_at: now.toISOString() };
        });
        return record.uid === next.uid ? next : asCreated(build, record);
      }),

    /**
     * Locks the schedule, plans the slots that have passed by now, applies the change and stores it with its event.
     * Does nothing if `change` returns undefined. Errors: schedule_not_found.
     */
    update: (uid: ScheduleUid, change: (schedule: Schedule, now: Date) => Change | undefined): Promise<Schedule> =>
      changing(async (tx, now) => {
        const schedule = await lock(tx, uid);
        const plan = schedule.nextSlotAt ? planSlots(schedule, schedule.nextSlotAt, now) : { slots: [], next: null };
        const changed = change({ ...schedule, nextSlotAt: plan.next }, now);
        if (!changed) return schedule;
        await insertSlots(
          tx,
          plan.slots.map((slot) => ({ ...slot, scheduleUid: uid, lease: null, dueAt: now })),
          now,
        );
        const { rows } = await tx.query<{ at: Date | null }>(
          "SELECT max(slot_at) AS at FROM slots WHERE schedule_uid = $1",
          [uid],
        );
        const next = advancePast(changed.next, rows[0]!.at);
        await save(tx, next);
        await appendEvents(tx, [changed.event]);
        return next;
      }),

    delete: (uid: ScheduleUid, event: (schedule: Schedule) => NewEvent): Promise<void> =>
      changing(async (tx, now) => {
        const schedule = await lock(tx, uid);
        await tx.query(
          "UPDATE schedules SET deleted_at = $2, next_slot_at = NULL, updated_at = $2, version = version + 1 WHERE uid = $1",
          [uid, now],
        );
        await appendEvents(tx, [event({ ...schedule, version: schedule.version + 1 })]);
      }),
  };
}

const asCreated = (build: Build, created: CreatedRecord): Schedule => ({
  ...build(new Date(created.created_at)).next,
  uid: created.uid,
});

export type ChangeSchedule = (schedule: Schedule) => Change;

/** Changes the schedules that name an agent, in the caller's transaction. */
export const updateSchedulesOfAgent = (tx: Sql, agentUid: string, change: ChangeSchedule): Promise<void> =>
  updateWhere(tx, "agent_uid = $1", [agentUid], change);

/** Changes the schedules of a team whose creator is the given member, in the caller's transaction. */
export const updateSchedulesOfMember = (
  tx: Sql,
  { teamUid, userUid }: { teamUid: string; userUid: string },
  change: ChangeSchedule,
): Promise<void> =>
  updateWhere(
    tx,
    "owner_type = 'team' AND owner_uid = $1 AND creator_type = 'user' AND creator_uid = $2",
    [teamUid, userUid],
    change,
  );

async function updateWhere(tx: Sql, where: string, params: readonly unknown[], change: ChangeSchedule): Promise<void> {
  const text = `SELECT ${SCHEDULE_COLUMNS} FROM schedules s WHERE ${where} AND deleted_at IS NULL ORDER BY uid FOR UPDATE`;
  const { rows } = await tx.query<ScheduleRow>(text, [...params]);
  for (const row of rows) {
    const { next, event } = change(toSchedule(row));
    await save(tx, next);
    await appendEvents(tx, [event]);
  }
}

async function lock(tx: Sql, uid: ScheduleUid): Promise<Schedule> {
  const { rows } = await tx.query<ScheduleRow>(
    `SELECT ${SCHEDULE_COLUMNS} FROM schedules s WHERE uid = $1 AND deleted_at IS NULL FOR UPDATE`,
    [uid],
  );
  if (!rows[0]) throw notFound("schedule");
  return toSchedule(rows[0]);
}

async function save(tx: Sql, next: Schedule): Promise<void> {
  await tx.query(
    `UPDATE schedules
        SET name = $2, cron_schedule = $3, time_zone = $4, enabled = $5, prompt = $6, agent_config = $7::jsonb, agent_uid = $8,
            mode = $9, metadata = $10::jsonb, overlap_policy = $11, catch_up_seconds = $12, updated_by_uid = $13, next_slot_at = $14,
            updated_at = $15, version = $16, last_spawn_error = $17, creator_type = $18, creator_uid = $19, creator_lost_access = $20
      WHERE uid = $1`,
    [next.uid, ...settingsOf(next), next.lastSpawnError, next.creator.type, next.creator.uid, next.creatorLostAccess],
  );
}

const settingsOf = (schedule: Schedule): unknown[] => [
  schedule.name,
  schedule.cronSchedule,
  schedule.timeZone,
  schedule.enabled,
  schedule.prompt,
  schedule.agentConfig === null ? null : JSON.stringify(schedule.agentConfig),
  schedule.agentUid,
  schedule.mode,
  JSON.stringify(schedule.metadata),
  schedule.overlapPolicy,
  schedule.catchUpSeconds,
  schedule.updatedByUid,
  schedule.nextSlotAt,
  schedule.updatedAt,
  schedule.version,
];

export type NewSlot = PlannedSlot & {
  readonly scheduleUid: ScheduleUid;
  readonly lease: string | null;
  readonly dueAt: Date;
};

/** Inserts slots; a slot that already has a row is unchanged. Returns the inserted slots. */
export async function insertSlots(
  tx: Sql,
  slots: readonly NewSlot[],
  now: Date,
): Promise<{ scheduleUid: string; slotAt: Date }[]> {
  if (slots.length === 0) return [];
  const rows = slots.map((slot) => ({
    u: slot.scheduleUid,
    s: slot.slotAt,
    t: slot.state,
    r: slot.reason,
    l: slot.lease,
    d: slot.state === "due" ? slot.dueAt : null,
  }));
  const inserted = await tx.query<{ schedule_uid: string; slot_at: Date }>(
    `INSERT INTO slots (schedule_uid, slot_at, state, reason, lease, due_at, decided_at, attempts)
     SELECT u, s, t, r, l, d,
            CASE WHEN t = 'due' THEN NULL ELSE $2::timestamptz END,
            CASE WHEN l IS NULL THEN 0 ELSE 1 END
       FROM jsonb_to_recordset($1::jsonb) AS n (u uuid, s timestamptz, t text, r text, l uuid, d timestamptz)
     ON CONFLICT DO NOTHING RETURNING schedule_uid, slot_at`,
    [JSON.stringify(rows), now],
  );
  return inserted.rows.map(({ schedule_uid: scheduleUid, slot_at: slotAt }) => ({ scheduleUid, slotAt }));
}
