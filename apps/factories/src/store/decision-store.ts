import type { Database, Sql } from "@millwright/database";
import { appendEvents, type NewEvent } from "@millwright/events";
import { as, type FactoryUid } from "@millwright/ids";
import { enqueueAllWork, enqueueWork, type NewWork } from "@millwright/work";
import type { AutomationUid } from "../domain/automation.ts";
import type { BuildsOfTask } from "../domain/bound-task.ts";
import {
  DECIDE,
  DECIDE_DELAYED,
  RETENTION_DAYS,
  START,
  type Decision,
  type DecisionEnd,
  type DecisionQuery,
  type DecisionRef,
  type Delayed,
  type DelayedRef,
  type EventRun,
  type Outcome,
  type RunInput,
  type ShownDecision,
  type TriggerCheck,
} from "../domain/decision.ts";
import type { JsonObject } from "@millwright/json";
import type { TriggerEvent } from "../domain/trigger-event.ts";

export type StoredRunInput = {
  readonly event: TriggerEvent;
  readonly outcome: Outcome;
  readonly runInput: RunInput | null;
  readonly runUid: string | null;
};

const MS_PER_DAY = 24 * 3_600_000;

/** Returns the queries of trigger events and decisions. */
export function decisionStore(database: Database) {
  const { sql } = database;
  return {
    /** Inserts decisions with their event, and work for pending ones. Existing decisions are unchanged. */
    insert: (
      event: TriggerEvent,
      decisions: readonly Decision[],
      now: Date,
      more: (tx: Sql) => Promise<void> = async () => {},
    ): Promise<void> =>
      database.transaction(async (tx) => {
        await insertDecisions(tx, event, decisions, now);
        await more(tx);
      }),

    /** As `insert`, and publishes an event if the trigger event is new. */
    insertWithEvent: (
      event: TriggerEvent,
      decisions: readonly Decision[],
      now: Date,
      auditEvent: NewEvent,
    ): Promise<void> =>
      database.transaction(async (tx) => {
        if (await insertDecisions(tx, event, decisions, now)) await appendEvents(tx, [auditEvent]);
      }),

    publish: (auditEvent: NewEvent): Promise<void> => database.transaction((tx) => appendEvents(tx, [auditEvent])),

    async findRunInput({ factoryUid, eventUid, automationUid }: DecisionRef): Promise<StoredRunInput | undefined> {
      const { rows } = await sql.query<
        EventRow & { outcome: Outcome; run_input: RunInput | null; run_uid: string | null }
      >(
        `SELECT ${EVENT_COLUMNS}, d.outcome, d.run_input, d.run_uid FROM decisions d JOIN trigger_events e ON e.factory_uid = d.factory_uid AND e.uid = d.event_uid
          WHERE d.factory_uid = $1 AND d.event_uid = $2 AND d.automation_uid = $3`,
        [factoryUid, eventUid, automationUid],
      );
      const [row] = rows;
      return row && { event: toEvent(row), outcome: row.outcome, runInput: row.run_input, runUid: row.run_uid };
    },

    /** Ends a pending decision. A decision that has ended is unchanged. */
    async settle({ factoryUid, eventUid, automationUid }: DecisionRef, end: DecisionEnd): Promise<void> {
      await sql.query(
        `UPDATE decisions SET outcome = $4, run_uid = $5::uuid, explanation = coalesce($6, explanation), run_input = NULL
          WHERE factory_uid = $1 AND event_uid = $2 AND automation_uid = $3 AND outcome = 'pending'`,
        [
          factoryUid,
          eventUid,
          automationUid,
          end.outcome,
          "runUid" in end ? end.runUid : null,
          "explanation" in end ? end.explanation : null,
        ],
      );
    },

    /** Returns the decisions of an event that wait for the code host, with the event; undefined if there are none. */
    async delayed({ factoryUid, eventUid }: DelayedRef): Promise<Delayed | undefined> {
      const { rows } = await sql.query<EventRow & { automation_uid: string; automation_name: string }>(
        `SELECT ${EVENT_COLUMNS}, d.automation_uid, d.automation_name FROM decisions d JOIN trigger_events e ON e.factory_uid = d.factory_uid AND e.uid = d.event_uid
          WHERE d.factory_uid = $1 AND d.event_uid = $2 AND ${IS_DELAYED} ORDER BY d.automation_uid`,
        [factoryUid, eventUid],
      );
      return (
        rows[0] && {
          event: toEvent(rows[0]),
          automations: rows.map((row) => ({ uid: as<AutomationUid>(row.automation_uid), name: row.automation_name })),
        }
      );
    },

    /**
     * Stores the results of delayed decisions, and enqueues work: the runs of matches, and another attempt for
     * decisions that stay delayed, after `delaySeconds`. A decision that is no longer delayed is unchanged.
     */
    resolve: (
      ref: DelayedRef,
      event: TriggerEvent,
      decisions: readonly Decision[],
      { now, delaySeconds }: { now: Date; delaySeconds: number },
      finish: (tx: Sql) => Promise<void>,
    ): Promise<void> =>
      database.transaction(async (tx) => {
        const next = await databaseTimeIn(tx, delaySeconds);
        const resolved: Decision[] = [];
        for (const decision of decisions) {
          const { rowCount } = await tx.query(
            `UPDATE decisions d SET outcome = $4, explanation = $5, checks = $6::jsonb, run_input = $7::jsonb, next_attempt_at = $8::timestamptz, build_task_uid = $9::uuid,
                    decided_at = CASE WHEN $8::timestamptz IS NULL THEN $10::timestamptz ELSE decided_at END
              WHERE factory_uid = $1 AND event_uid = $2 AND automation_uid = $3 AND ${IS_DELAYED}`,
            [
              ref.factoryUid,
              ref.eventUid,
              decision.automationUid,
              decision.outcome,
              decision.explanation,
              JSON.stringify(decision.checks),
              decision.runInput && JSON.stringify(decision.runInput),
              decision.isDelayed ? next : null,
              taskOfBuild(decision),
              now,
            ],
          );
          if (rowCount > 0) resolved.push(decision);
        }
        await enqueueRuns(tx, event, resolved);
        if (resolved.some(({ isDelayed }) => isDelayed))
          await enqueueWork(tx, toDecideDelayed(event, ref.attempt + 1, next));
        await finish(tx);
      }),

    /** Lists decisions, newest first. An event is also found by the uid of its delivery. */
    async list({ factoryUid, automationUid, eventUid, after, limit }: DecisionQuery): Promise<ShownDecision[]> {
      const { rows } = await sql.query<DecisionRow>(
        `SELECT ${EVENT_COLUMNS}, d.automation_uid, d.automation_name, d.outcome, d.explanation, d.checks, d.run_uid, d.decided_at AS at,
                CASE WHEN d.outcome = 'pending' THEN d.next_attempt_at END AS next_attempt_at
           FROM decisions d JOIN trigger_events e ON e.factory_uid = d.factory_uid AND e.uid = d.event_uid
          WHERE d.factory_uid = $1 AND ($2::uuid IS NULL OR d.automation_uid = $2)
            AND ($3::uuid IS NULL OR d.event_uid IN (SELECT t.uid FROM trigger_events t WHERE t.factory_uid = $1 AND (t.uid = $3 OR t.delivery_uid = $3)))
            AND ($4::timestamptz IS NULL OR (d.decided_at, d.event_uid, d.automation_uid) < ($4, $5::uuid, $6::uuid))
          ORDER BY d.decided_at DESC, d.event_uid DESC, d.automation_uid DESC LIMIT $7`,
        [
          factoryUid,
          automationUid ?? null,
          eventUid ?? null,
          after?.at ?? null,
          after?.eventUid ?? null,
          after?.automationUid ?? null,
          limit,
        ],
      );
      return rows.map((row) => ({
        event: toEvent(row),
        automationUid: as<AutomationUid>(row.automation_uid),
        automationName: row.automation_name,
        outcome: row.outcome,
        explanation: row.explanation,
        checks: row.checks,
        runUid: row.run_uid,
        decidedAt: row.at,
        nextAttemptAt: row.next_attempt_at,
      }));
    },

    async findEvent(
      factoryUid: FactoryUid,
      eventUid: string,
    ): Promise<{ event: TriggerEvent; decidedAt: Date } | undefined> {
      const { rows } = await sql.query<EventRow & { decided_at: Date }>(
        `SELECT ${EVENT_COLUMNS}, e.decided_at FROM trigger_events e WHERE e.factory_uid = $1 AND e.uid = $2`,
        [factoryUid, eventUid],
      );
      return rows[0] && { event: toEvent(rows[0]), decidedAt: rows[0].decided_at };
    },

    /** Counts how often builds continued these tasks since a time, including pending decisions. */
    async continuedFor(factoryUid: string, taskUids: readonly string[], since: Date): Promise<BuildsOfTask[]> {
      const { rows } = await sql.query<BuildsOfTask>(
        `SELECT automation_uid AS "automationUid", build_task_uid AS "taskUid", count(*)::int AS times FROM decisions
          WHERE factory_uid = $1 AND build_task_uid = ANY ($2::uuid[]) AND decided_at > $3 AND outcome IN ('pending', 'continued') GROUP BY 1, 2`,
        [factoryUid, taskUids, since],
      );
      return rows;
    },

    /** Lists runs of events and their deliveries, oldest first. */
    async runsOf(factoryUid: FactoryUid, eventUids: readonly string[]): Promise<EventRun[]> {
      const { rows } = await sql.query<EventRun>(
        `SELECT coalesce(e.delivery_uid, e.uid) AS "eventUid", d.automation_uid AS "automationUid", d.automation_name AS "automationName", d.run_uid AS "runUid"
           FROM (SELECT factory_uid, uid, delivery_uid FROM trigger_events WHERE factory_uid = $1 AND delivery_uid = ANY ($2::uuid[])
                 UNION SELECT factory_uid, uid, delivery_uid FROM trigger_events WHERE factory_uid = $1 AND uid = ANY ($2::uuid[])) e
           JOIN decisions d ON d.factory_uid = e.factory_uid AND d.event_uid = e.uid
          WHERE d.run_uid IS NOT NULL ORDER BY d.decided_at, d.event_uid, d.automation_uid`,
        [factoryUid, eventUids],
      );
      return rows;
    },

    /** Deletes old events with their decisions. */
    async prune(now: Date): Promise<number> {
      const before = (days: number) => new Date(now.getTime() - days * MS_PER_DAY);
      const { rowCount } = await sql.query(
        `DELETE FROM trigger_events e WHERE e.decided_at < $1
            AND (e.decided_at < $2 OR NOT EXISTS (SELECT FROM decisions d WHERE d.factory_uid = e.factory_uid AND d.event_uid = e.uid AND d.outcome IN ('fired', 'continued', 'pending')))`,
        [before(RETENTION_DAYS.others), before(RETENTION_DAYS.fired)],
      );
      return rowCount;
    },
  };
}

export type DecisionStore = ReturnType<typeof decisionStore>;

/** Enqueues events to be decided, in the consumer's transaction, each with its trace. */
export const enqueueDecisions = (
  sql: Sql,
  all: readonly { event: TriggerEvent; traceparent: string | undefined }[],
): Promise<void> =>
  enqueueAllWork(
    sql,
    all.map(({ event, traceparent }) => ({ ...toDecide(event), traceparent })),
  );

const toDecide = (event: TriggerEvent): NewWork => ({
  kind: DECIDE,
  key: `${event.factoryUid}/${event.uid}`,
  payload: event,
  teamUid: event.teamUid,
});

/**
 * Inserts the decisions about an event in the caller's transaction. Existing decisions are unchanged. Returns whether
 * the event is new.
 */
async function insertDecisions(
  tx: Sql,
  event: TriggerEvent,
  decisions: readonly Decision[],
  now: Date,
): Promise<boolean> {
  const { rowCount: isNew } = await tx.query(
    `INSERT INTO trigger_events (factory_uid, uid, team_uid, provider, event, delivery_uid, subject, request_id, occurred_at, decided_at)
     VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8, $9, $10) ON CONFLICT DO NOTHING`,
    [
      event.factoryUid,
      event.uid,
      event.teamUid,
      event.provider,
      event.event,
      event.deliveryUid,
      JSON.stringify(event.subject),
      event.requestId,
      event.occurredAt,
      now,
    ],
  );
  const due = decisions.some(({ isDelayed }) => isDelayed) ? await databaseTimeIn(tx, 0) : now;
  const stored: Decision[] = [];
  for (const decision of decisions) {
    const { rowCount } = await tx.query(
      `INSERT INTO decisions (factory_uid, event_uid, automation_uid, automation_name, outcome, explanation, checks, run_input, run_uid, decided_at, build_task_uid, next_attempt_at)
       VALUES ($1, $2, $3, $4, $5, $6, $7::jsonb, $8::jsonb, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
      [
        event.factoryUid,
        event.uid,
        decision.automationUid,
        decision.automationName,
        decision.outcome,
        decision.explanation,
        JSON.stringify(decision.checks),
        decision.runInput && JSON.stringify(decision.runInput),
        decision.runUid,
        now,
        taskOfBuild(decision),
        decision.isDelayed ? due : null,
      ],
    );
    if (rowCount > 0) stored.push(decision);
  }
  await enqueueRuns(tx, event, stored);
  if (stored.some(({ isDelayed }) => isDelayed)) await enqueueWork(tx, toDecideDelayed(event, 1, due));
  return isNew > 0;
}

/** Enqueues work that starts the runs of matching decisions. */
async function enqueueRuns(tx: Sql, event: TriggerEvent, decisions: readonly Decision[]): Promise<void> {
  for (const { automationUid, outcome, isDelayed } of decisions) {
    if (outcome !== "pending" || isDelayed) continue;
    const ref: DecisionRef = { factoryUid: event.factoryUid, eventUid: event.uid, automationUid };
    await enqueueWork(tx, {
      kind: START,
      key: `${ref.eventUid}/${ref.automationUid}`,
      payload: ref,
      teamUid: event.teamUid,
    });
  }
}

const toDecideDelayed = (
  { factoryUid, uid: eventUid, teamUid }: TriggerEvent,
  attempt: number,
  runAt: Date,
): NewWork => {
  const payload: DelayedRef = { factoryUid, eventUid, attempt };
  return { kind: DECIDE_DELAYED, key: `${factoryUid}/${eventUid}/${attempt}`, payload, teamUid, runAt };
};

/** Returns a time of the database's clock, at which work becomes due. */
async function databaseTimeIn(tx: Sql, seconds: number): Promise<Date> {
  const { rows } = await tx.query<{ at: Date }>(
    "SELECT date_trunc('milliseconds', now() + make_interval(secs => $1)) AS at",
    [seconds],
  );
  return rows[0]!.at;
}

const taskOfBuild = ({ runInput }: Decision): string | null =>
  runInput?.continues?.isForBuild ? runInput.continues.taskUid : null;

const IS_DELAYED = "d.outcome = 'pending' AND d.next_attempt_at IS NOT NULL";
const EVENT_COLUMNS =
  "e.uid, e.factory_uid, e.team_uid, e.provider, e.event, e.delivery_uid, e.subject, e.request_id, e.occurred_at";
type EventRow = {
  uid: string;
  factory_uid: string;
  team_uid: string;
  provider: string;
  event: string;
  delivery_uid: string | null;
  subject: JsonObject;
  request_id: string;
  occurred_at: Date;
};
type DecisionRow = EventRow & {
  automation_uid: string;
  automation_name: string;
  outcome: Outcome;
  explanation: string;
  checks: TriggerCheck[];
  run_uid: string | null;
  at: Date;
  next_attempt_at: Date | null;
};

const toEvent = (row: EventRow): TriggerEvent => ({
  uid: row.uid,
  factoryUid: row.factory_uid,
  teamUid: row.team_uid,
  provider: row.provider,
  event: row.event,
  deliveryUid: row.delivery_uid,
  subject: row.subject,
  requestId: row.request_id,
  occurredAt: row.occurred_at.toISOString(),
});
