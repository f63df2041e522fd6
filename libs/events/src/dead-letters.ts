import { isTransient, type Sql } from "@millwright/database";
import type { StoredEvent } from "./event.ts";

/** Applies one event in the caller's transaction. If it throws, the event is dead-lettered. */
export type EventHandler = (tx: Sql, event: StoredEvent) => Promise<void>;
export type EventHandlers = Readonly<Record<string, EventHandler>>;
/** Applies adjacent events in one call; after a failure, called again with fewer events or a single one. */
export type EventsHandler = (tx: Sql, events: readonly StoredEvent[]) => Promise<void>;
export type EventsHandlers = Readonly<Record<string, EventsHandler>>;

export type Subscription = { reader: string; source: string };

export const entityKey = (event: { entity: string; entityUid: string }): string => `${event.entity}/${event.entityUid}`;

/** Applies an event in a savepoint. Returns the error of the handler, whose writes are then rolled back. */
export async function applyInSavepoint(tx: Sql, handler: EventHandler, event: StoredEvent): Promise<unknown> {
  await tx.query("SAVEPOINT event");
  // Await every statement: the failure of a statement that is not awaited would fail the transaction, not the event.
  const waiting: Sql = { query: (text, params) => tx.query(text, params), announce: (topic) => tx.announce?.(topic) };
  try {
    await handler(waiting, event);
  } catch (error) {
    await tx.query("ROLLBACK TO SAVEPOINT event");
    return error ?? new Error("nothing was thrown");
  }
  await tx.query("RELEASE SAVEPOINT event");
  return undefined;
}

/**
 * Applies events in order in one savepoint; adjacent events with a common handler in one call. Returns the first error;
 * all writes are then rolled back, and the caller must retry each event alone.
 */
export async function applyAllInSavepoint(
  tx: Sql,
  handlers: EventHandlers,
  batchHandlers: EventsHandlers,
  events: readonly StoredEvent[],
): Promise<unknown> {
  const all: EventHandler = async () => {
    for (let left = events; left.length > 0;) {
      const handleAll = batchHandlers[left[0]!.type];
      const end = handleAll ? left.findIndex(({ type }) => batchHandlers[type] !== handleAll) : 1;
      const batch = left.slice(0, end < 0 ? left.length : end);
      await (handleAll && batch.length > 1 ? handleAll(tx, batch) : handlers[batch[0]!.type]!(tx, batch[0]!));
      left = left.slice(batch.length);
    }
  };
  return applyInSavepoint(tx, all, events[0]!);
}

/** Returns the error text stored with a dead-lettered event, without the stack. */
export const reasonOf = (error: unknown): string =>
  (error instanceof Error ? `${error.name}: ${error.message}` : "not an Error").slice(0, 500);

/** Returns the entities with dead-lettered events: their later events must wait behind them. */
export async function deadLetteredEntities(tx: Sql, { reader, source }: Subscription): Promise<Set<string>> {
  const { rows } = await tx.query<{ entity: string; entityUid: string }>(
    `SELECT DISTINCT entity, entity_uid AS "entityUid" FROM stream.dead_lettered_events WHERE reader = $1 AND source = $2`,
    [reader, source],
  );
  return new Set(rows.map(entityKey));
}

export async function deadLetter(
  tx: Sql,
  { reader, source }: Subscription,
  event: StoredEvent,
  reason: string,
): Promise<void> {
  await tx.query(
    `INSERT INTO stream.dead_lettered_events (reader, source, position, entity, entity_uid, event, reason)
     VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7)`,
    [reader, source, event.position, event.entity, event.entityUid, JSON.stringify(event), reason],
  );
}

/**
 * Retries every dead-lettered event in order. An entity's first event that fails again blocks the later ones of that
 * entity; a transient failure is thrown. Call it with the cursor locked, so that no new event overtakes.
 */
export async function replay(
  tx: Sql,
  subscription: Subscription,
  handlers: EventHandlers,
): Promise<{ applied: number; deadLettered: number }> {
  const { reader, source } = subscription;
  const { rows } = await tx.query<{ event: StoredEvent }>(
    "SELECT event FROM stream.dead_lettered_events WHERE reader = $1 AND source = $2 ORDER BY position",
    [reader, source],
  );
  const blocked = new Set<string>();
  let applied = 0;
  for (const row of rows) {
    const event = { ...row.event, occurredAt: new Date(row.event.occurredAt) };
    if (blocked.has(entityKey(event))) continue;
    const handler = handlers[event.type];
    const error = handler
      ? await applyInSavepoint(tx, handler, event)
      : new Error(`there is no handler for ${event.type}`);
    if (error === undefined) {
      await tx.query("DELETE FROM stream.dead_lettered_events WHERE reader = $1 AND source = $2 AND position = $3", [
        reader,
        source,
        event.position,
      ]);
      applied += 1;
    } else {
      if (isTransient(error)) throw error;
      blocked.add(entityKey(event));
      await tx.query(
        "UPDATE stream.dead_lettered_events SET attempts = attempts + 1, reason = $4 WHERE reader = $1 AND source = $2 AND position = $3",
        [reader, source, event.position, reasonOf(error)],
      );
    }
  }
  return { applied, deadLettered: rows.length - applied };
}
