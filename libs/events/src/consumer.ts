import type { Clock } from "@millwright/clock";
import { BackgroundLoop, isTransient } from "@millwright/database";
import type { Database, Sql } from "@millwright/database";
import { parseTraceparent, traced, type Logger, type Tracer } from "@millwright/telemetry";
import type { WakeupBus } from "./wakeup-bus.ts";
import type { FeedPage, FeedReader, StoredEvent } from "./event.ts";
import {
  applyAllInSavepoint,
  applyInSavepoint,
  entityKey,
  deadLetter,
  deadLetteredEntities,
  reasonOf,
  replay,
} from "./dead-letters.ts";
import type { EventHandler, EventHandlers, EventsHandler, EventsHandlers, Subscription } from "./dead-letters.ts";

export type ConsumerDeps = {
  /**
   * Name of the consumer: unique within this service for one source, and stable, since its cursor is stored under it.
   */
  name: string;
  /** The service whose log is read, such as "orchestrator". */
  source: string;
  read: FeedReader;
  /** The consumer's own database: cursor and effects are committed together. */
  database: Database;
  clock: Clock;
  log: Logger;
  /** By event type. Events of other types are skipped. */
  handlers: EventHandlers;
  /** By event type, for types with many events: adjacent events with the same function are applied in one call. */
  batchHandlers?: EventsHandlers;
  wakeups?: WakeupBus;
  /** Records a span per event as a child of the event's trace context; absent: none. */
  tracer?: Tracer | undefined;
};

/** The progress of a consumer. */
export type FeedProgress = {
  readonly reader: string;
  readonly source: string;
  readonly lagEvents: number;
  /** Age of the oldest event that was read and not yet applied; 0 if it has caught up. */
  readonly lagSeconds: number;
  /** Time since the last read of the source. */
  readonly secondsSinceRead: number;
};

const BATCH = 200;
/** How long an event may wait without a wake-up. */
const POLL_MS = 2000;
/** While wake-ups continue, events are collected for this long, so that one commit has many of them. */
const REST_MS = 200;

type Cursor = { logUid: string | null; position: number; stoppedReason: string | null };
type StoredCursor = Cursor & { isReplayRequested: boolean };
type Step = "applied" | "applied in part" | "caught up" | "moved by another" | "stopped";

/**
 * Applies the events of another service's log to this service's database: each exactly once, in order. Any number of
 * replicas may run; the row lock of the cursor lets one of them apply a batch, and the others see its result.
 */
export class Consumer {
  readonly #deps: ConsumerDeps;
  readonly #log: Logger;
  readonly #subscription: Subscription;
  readonly #handlers: EventHandlers;
  readonly #batchHandlers: EventsHandlers;
  readonly #types: readonly string[];
  readonly #loop: BackgroundLoop;
  #stopping = new AbortController();
  #unsubscribeWakeups: () => void = () => {};
  #readMs = Number.NaN;
  #lag: { readonly events: number; readonly sinceMs: number | undefined } = { events: 0, sinceMs: undefined };

  constructor(deps: ConsumerDeps) {
    this.#deps = deps;
    this.#log = deps.log.child({ consumer: deps.name, source: deps.source });
    this.#subscription = { reader: deps.name, source: deps.source };
    const batchHandlers = Object.entries(deps.batchHandlers ?? {});
    const singleHandlers = batchHandlers.map(([type, handle]): [string, EventHandler] => [
      type,
      (tx, event) => handle(tx, [event]),
    ]);
    this.#handlers = Object.fromEntries(
      [...singleHandlers, ...Object.entries(deps.handlers)].map(([type, handle]) => [
        type,
        inScopeOfCause(deps, handle),
      ]),
    );
    this.#types = Object.keys(this.#handlers);
    const inScope = new Map(batchHandlers.map(([, handle]) => [handle, inScopeOfCauses(deps, handle)]));
    this.#batchHandlers = Object.fromEntries(batchHandlers.map(([type, handle]) => [type, inScope.get(handle)!]));
    this.#loop = new BackgroundLoop({
      everyMs: POLL_MS,
      restMs: REST_MS,
      step: async () => (["applied in part", "moved by another"].includes(await this.#step()) ? "again" : "idle"),
      onError: (error) =>
        this.#stopping.signal.aborted || this.#log.warn({ error }, "a batch of events was not applied; it is retried"),
    });
  }

  start(): void {
    this.#unsubscribeWakeups = this.#deps.wakeups?.subscribe(this.#types, () => this.wake()) ?? (() => {});
    this.#stopping = new AbortController();
    this.#loop.start();
  }

  /** Ends a running read, waits for the batch that is being applied, and stops. */
  async stop(): Promise<void> {
    this.#unsubscribeWakeups();
    this.#stopping.abort();
    await this.#loop.stop();
  }

  wake(): void {
    this.#loop.wake();
  }

  /**
   * Applies all current events of the source. For tests and for orderly starts; a stopped consumer returns at once.
   */
  async drain(): Promise<void> {
    while (["applied", "applied in part", "moved by another"].includes(await this.#step()));
  }

  /** Returns how far the consumer was behind its source at the last read; undefined before the first one. */
  progress(): FeedProgress | undefined {
    const { clock, name: reader, source } = this.#deps;
    if (Number.isNaN(this.#readMs)) return undefined;
    const { events, sinceMs } = this.#lag;
    return {
      reader,
      source,
      lagEvents: events,
      lagSeconds: sinceMs === undefined ? 0 : Math.max(0, clock.now().getTime() - sinceMs) / 1000,
      secondsSinceRead: (clock.monotonicMs() - this.#readMs) / 1000,
    };
  }

  /** Retries the dead-lettered events in order, and so fulfils a request for it. */
  async replayDeadLettered(): Promise<{ applied: number; deadLettered: number }> {
    return this.#deps.database.transaction(async (tx) => {
      await this.#lockCursor(tx);
      return this.#replay(tx);
    });
  }

  /** The operator's decision after a replaced log: accepts the source's current log and continues after `position`. */
  async resumeAfter(position: number): Promise<void> {
    const { logUid } = await this.#deps.read({ after: position, limit: 1 });
    await this.#deps.database.transaction(async (tx) => {
      await this.#lockCursor(tx);
      await this.#writeCursor(tx, { logUid, position, stoppedReason: null });
    });
    this.wake();
  }

  /** Replays if an operator requested it and no other replica has done so. */
  async #fulfilReplayRequest(): Promise<void> {
    await this.#deps.database.transaction(async (tx) => {
      if (!(await this.#lockCursor(tx)).isReplayRequested) return;
      await this.#replay(tx);
      this.#log.info("dead-lettered events were replayed");
    });
  }

  async #replay(tx: Sql): Promise<{ applied: number; deadLettered: number }> {
    const result = await replay(tx, this.#subscription, this.#handlers);
    await tx.query("UPDATE stream.feed_cursors SET replay_requested_at = NULL WHERE reader = $1 AND source = $2", [
      this.#deps.name,
      this.#deps.source,
    ]);
    return result;
  }

  async #step(): Promise<Step> {
    // Checked without a lock, which would be a write: a wake-up for events of other types costs this consumer two
    // reads.
    const cursor =
      (await this.#readCursor(this.#deps.database.sql)) ??
      (await this.#deps.database.transaction((tx) => this.#lockCursor(tx)));
    if (cursor.isReplayRequested) await this.#fulfilReplayRequest();
    if (cursor.stoppedReason !== null) return "stopped";
    const { signal } = this.#stopping;
    const page = await this.#deps.read({ after: cursor.position, limit: BATCH, types: this.#types, signal });
    this.#recordProgress(cursor.position, page);
    const reason = whyUnreadable(cursor, page);
    if (reason === undefined && page.through === cursor.position) return "caught up";
    return this.#deps.database
      .transaction(async (tx) => {
        const now = await this.#lockCursor(tx);
        if (now.position !== cursor.position || now.logUid !== cursor.logUid || now.stoppedReason !== null)
          return "moved by another";
        if (reason !== undefined) {
          this.#log.error(
            { reason, logUid: page.logUid, position: cursor.position, head: page.head },
            "a consumer stopped: decide where it continues",
          );
          await this.#writeCursor(tx, { ...cursor, stoppedReason: reason });
          return "stopped";
        }
        await this.#applyAll(tx, page.events);
        await this.#writeCursor(tx, { logUid: page.logUid, position: page.through, stoppedReason: null });
        return page.events.length < BATCH && page.through >= page.head ? "applied" : "applied in part";
      })
      .then((step) => {
        if (step.startsWith("applied")) this.#recordProgress(page.through, { ...page, events: [] });
        return step;
      });
  }

  #recordProgress(position: number, { head, events }: FeedPage): void {
    this.#readMs = this.#deps.clock.monotonicMs();
    this.#lag = { events: Math.max(0, head - position), sinceMs: events[0]?.occurredAt.getTime() };
  }

  async #applyAll(tx: Sql, events: StoredEvent[]): Promise<void> {
    const handled = events.filter(({ type }) => this.#handlers[type]);
    if (handled.length === 0) return;
    const deadLettered = await deadLetteredEntities(tx, this.#subscription);
    const isUsual = handled.every((event) => !deadLettered.has(entityKey(event)));
    const failure = isUsual ? await applyAllInSavepoint(tx, this.#handlers, this.#batchHandlers, handled) : "not tried";
    if (failure === undefined) return;
    if (isTransient(failure)) throw failure;
    for (const event of handled) {
      const handler = this.#handlers[event.type]!;
      if (deadLettered.has(entityKey(event))) {
        await deadLetter(tx, this.#subscription, event, "waits behind a dead-lettered event of the same entity");
        continue;
      }
      const error = await applyInSavepoint(tx, handler, event);
      if (error === undefined) continue;
      if (isTransient(error)) throw error;
      deadLettered.add(entityKey(event));
      await deadLetter(tx, this.#subscription, event, reasonOf(error));
      this.#log.error(
        {
          eventType: event.type,
          eventUid: event.uid,
          entityUid: event.entityUid,
          requestId: event.requestId,
          traceId: parseTraceparent(event.traceparent)?.traceId,
          error,
        },
        "an event was dead-lettered",
      );
    }
  }

  async #readCursor(sql: Sql, lock: "" | "FOR UPDATE" = ""): Promise<StoredCursor | undefined> {
    const select = `SELECT log_uid AS "logUid", position, stopped_reason AS "stoppedReason",
                           replay_requested_at IS NOT NULL AS "isReplayRequested"
                      FROM stream.feed_cursors
                     WHERE reader = $1 AND source = $2 ${lock}`;
    const { rows } = await sql.query<StoredCursor>(select, [this.#deps.name, this.#deps.source]);
    return rows[0];
  }

  async #lockCursor(tx: Sql): Promise<StoredCursor> {
    const cursor = await this.#readCursor(tx, "FOR UPDATE");
    if (cursor) return cursor;
    await tx.query("INSERT INTO stream.feed_cursors (reader, source) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
      this.#deps.name,
      this.#deps.source,
    ]);
    return this.#lockCursor(tx);
  }

  async #writeCursor(tx: Sql, { logUid, position, stoppedReason }: Cursor): Promise<void> {
    await tx.query(
      `UPDATE stream.feed_cursors SET log_uid = $3, position = $4, stopped_reason = $5, updated_at = $6 WHERE reader = $1 AND source = $2`,
      [this.#deps.name, this.#deps.source, logUid, position, stoppedReason, this.#deps.clock.now()],
    );
  }
}

/** Runs a handler in a span that continues the event's trace. */
const inScopeOfCause =
  ({ name, source, tracer }: ConsumerDeps, handle: EventHandler): EventHandler =>
  (tx, event) => {
    const cause = parseTraceparent(event.traceparent);
    const attributes = {
      "messaging.operation.type": "process",
      "messaging.destination.name": event.type,
      "messaging.message.id": event.uid,
      "messaging.consumer.group.name": `${name}/${source}`,
    };
    const fields = { requestId: event.requestId, eventUid: event.uid, eventType: event.type };
    return traced(
      `process ${event.type}`,
      { tracer, kind: "consumer", parent: cause, links: cause ? [cause] : [], attributes, fields },
      () => handle(tx, event),
    );
  };

/** As above for a batch: one span, linked to the trace of each event. */
const inScopeOfCauses =
  ({ name, source, tracer }: ConsumerDeps, handle: EventsHandler): EventsHandler =>
  (tx, events) => {
    const links = events.flatMap((event) => parseTraceparent(event.traceparent) ?? []);
    const attributes = {
      "messaging.operation.type": "process",
      "messaging.batch.message_count": events.length,
      "messaging.consumer.group.name": `${name}/${source}`,
    };
    return traced("process events", { tracer, kind: "consumer", parent: undefined, links, attributes }, () =>
      handle(tx, events),
    );
  };

function whyUnreadable(cursor: Cursor, page: FeedPage): string | undefined {
  if (cursor.logUid !== null && cursor.logUid !== page.logUid) return "log_replaced";
  if (cursor.position > page.head) return "cursor_beyond_head";
  if (cursor.logUid !== null && page.first !== undefined && cursor.position < page.first - 1) return "events_expired";
  return undefined;
}
