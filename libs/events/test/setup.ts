import { systemClock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import { appendEvents, EVENT_TABLES_SQL, EventLog } from "@millwright/events";
import type { NewEvent } from "@millwright/events";
import { memoryLog, testDatabase } from "@millwright/testing";

/** A database that has the event tables. */
export async function eventDatabase() {
  const t = await testDatabase();
  await t.database.pool.query(EVENT_TABLES_SQL);
  return t;
}

export function anEvent(overrides: Partial<NewEvent> = {}): NewEvent {
  return {
    type: "millwright.run.created.v1",
    entity: "run",
    entityUid: "run-1",
    entityVersion: 1,
    actor: { type: "user", uid: "u" },
    requestId: "r",
    payload: {},
    ...overrides,
  };
}

export const append = (database: Database, ...events: Partial<NewEvent>[]): Promise<void> =>
  database.transaction((tx) => appendEvents(tx, events.map(anEvent)));

export const aLog = (database: Database): EventLog => new EventLog({ database, clock: systemClock, log: memoryLog() });

export async function readAll(log: EventLog) {
  const { events } = await log.read({ after: 0, limit: 1000 });
  return events;
}
