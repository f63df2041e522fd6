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
  park,
  parkedEntities,
  reasonOf,
  replay,
} from "./dead-letters.ts";
import type { EventHandler, EventHandlers, EventsHandler, EventsHandlers, Subscription } from "./dead-letters.ts";

export type ConsumerDeps = {
  /** The reader: unique within this service for one source, and stable, since the cursor is kept under it. */
  name: string;
  /** The service whose log is read, such as "orchestrator". */
  source: string;
  read: FeedReader;
  /** The reader's own database: cursor and effects are committed together. */
  database: Database;
  clock: Clock;
  log: Logger;
  /** By event type. Other types are passed over. */
  handlers: EventHandlers;
  /** By event type, of those of which many come at once: what is next to each other and has the same function here is applied together. */
  together?: EventsHandlers;
  wakeups?: WakeupBus;
  /** Records a span per event, below what brought the event about; absent: none. */
  tracer?: Tracer | undefined;
};

/** How a reader follows its source. */
export type FeedProgress = {
  readonly reader: string;
  readonly source: string;
  readonly lagEvents: number;
  /** Age of the oldest event that it had read and not yet applied; 0 when it had caught up. */
  readonly lagSeconds: number;
  /** Since the source was last heard. */
  readonly lastLookSeconds: number;
};

const BATCH = 200;
/** How long an event may wait when nobody rang. */
const POLL_MS = 2000;
/** While rings keep coming, events are gathered this long: a commit then carries many instead of one. */
const REST_MS = 50;

type Cursor = { logUid: string | null; position: number; parkedReason: string | null };
type Step = "applied" | "applied in part" | "caught up" | "moved by another" | "parked";

/**
 * Applies the events of another service's log to this service's database: each exactly once, in order. Any number of
 * replicas may run; the row lock of the cursor lets one apply a batch and shows the others that it was done.
 */
export class Consumer {
  readonly #deps: ConsumerDeps;
  readonly #log: Logger;
  readonly #subscription: Subscription;
  readonly #handlers: EventHandlers;
  readonly #together: EventsHandlers;
  readonly #types: readonly string[];
  readonly #loop: BackgroundLoop;
  #unlisten: () => void = () => {};
  #lookedMs = Number.NaN;
  #lag: { readonly events: number; readonly sinceMs: number | undefined } = { events: 0, sinceMs: undefined };

  constructor(deps: ConsumerDeps) {
    this.#deps = deps;
    this.#log = deps.log.child({ consumer: deps.name, source: deps.source });
    this.#subscription = { reader: deps.name, source: deps.source };
    const together = Object.entries(deps.together ?? {});
    const alone = together.map(([type, handle]): [string, EventHandler] => [type, (tx, event) => handle(tx, [event])]);
    this.#handlers = Object.fromEntries(
      [...alone, ...Object.entries(deps.handlers)].map(([type, handle]) => [type, inScopeOfCause(deps, handle)]),
    );
    this.#types = Object.keys(this.#handlers);
    const inScope = new Map(together.map(([, handle]) => [handle, inScopeOfCauses(deps, handle)]));
    this.#together = Object.fromEntries(together.map(([type, handle]) => [type, inScope.get(handle)!]));
    this.#loop = new BackgroundLoop({
      everyMs: POLL_MS,
      restMs: REST_MS,
      step: async () => (["applied in part", "moved by another"].includes(await this.#step()) ? "again" : "idle"),
      onError: (error) => this.#log.warn({ error }, "a batch of events was not applied; it is retried"),
    });
  }

  start(): void {
    const entities = new Set(Object.keys(this.#handlers).map(entityOf));
    this.#unlisten = this.#deps.wakeups?.subscribe((entity) => entities.has(entity) && this.wake()) ?? (() => {});
    this.#loop.start();
  }

  /** Lets the running batch end. */
  async stop(): Promise<void> {
    this.#unlisten();
    await this.#loop.stop();
  }

  wake(): void {
    this.#loop.wake();
  }

  /** Applies everything the source has now. For tests and for orderly starts; parked consumers return at once. */
  async drain(): Promise<void> {
    while (["applied", "applied in part", "moved by another"].includes(await this.#step()));
  }

  /** How far behind its source it was when it looked last; undefined before the first look. */
  progress(): FeedProgress | undefined {
    const { clock, name: reader, source } = this.#deps;
    if (Number.isNaN(this.#lookedMs)) return undefined;
    const { events, sinceMs } = this.#lag;
    return {
      reader,
      source,
      lagEvents: events,
      lagSeconds: sinceMs === undefined ? 0 : Math.max(0, clock.now().getTime() - sinceMs) / 1000,
      lastLookSeconds: (clock.monotonicMs() - this.#lookedMs) / 1000,
    };
  }

  /** Tries the parked events again, in order. */
  async replayParked(): Promise<{ applied: number; parked: number }> {
    return this.#deps.database.transaction(async (tx) => {
      await this.#lockCursor(tx);
      return replay(tx, this.#subscription, this.#handlers);
    });
  }

  /** The decision after a replaced log: accepts the source's present log and goes on after `position`. */
  async resumeAfter(position: number): Promise<void> {
    const { logUid } = await this.#deps.read({ after: position, limit: 1 });
    await this.#deps.database.transaction(async (tx) => {
      await this.#lockCursor(tx);
      await this.#writeCursor(tx, { logUid, position, parkedReason: null });
    });
    this.wake();
  }

  async #step(): Promise<Step> {
    // Looked at without a lock, which would be a write: a ring for others' events costs this reader two reads.
    const cursor =
      (await this.#readCursor(this.#deps.database.sql)) ??
      (await this.#deps.database.transaction((tx) => this.#lockCursor(tx)));
    if (cursor.parkedReason !== null) return "parked";
    const page = await this.#deps.read({ after: cursor.position, limit: BATCH, types: this.#types });
    this.#note(cursor.position, page);
    const reason = whyUnreadable(cursor, page);
    if (reason === undefined && page.through === cursor.position) return "caught up";
    return this.#deps.database
      .transaction(async (tx) => {
        const now = await this.#lockCursor(tx);
        if (now.position !== cursor.position || now.logUid !== cursor.logUid || now.parkedReason !== null)
          return "moved by another";
        if (reason !== undefined) {
          this.#log.error(
            { reason, logUid: page.logUid, position: cursor.position, head: page.head },
            "a consumer parked: decide where it goes on",
          );
          await this.#writeCursor(tx, { ...cursor, parkedReason: reason });
          return "parked";
        }
        await this.#applyAll(tx, page.events);
        await this.#writeCursor(tx, { logUid: page.logUid, position: page.through, parkedReason: null });
        return page.events.length < BATCH && page.through >= page.head ? "applied" : "applied in part";
      })
      .then((step) => {
        if (step.startsWith("applied")) this.#note(page.through, { ...page, events: [] });
        return step;
      });
  }

  #note(position: number, { head, events }: FeedPage): void {
    this.#lookedMs = this.#deps.clock.monotonicMs();
    this.#lag = { events: Math.max(0, head - position), sinceMs: events[0]?.occurredAt.getTime() };
  }

  async #applyAll(tx: Sql, events: StoredEvent[]): Promise<void> {
    const handled = events.filter(({ type }) => this.#handlers[type]);
    if (handled.length === 0) return;
    const parked = await parkedEntities(tx, this.#subscription);
    const isUsual = handled.every((event) => !parked.has(entityKey(event)));
    const failure = isUsual ? await applyAllInSavepoint(tx, this.#handlers, this.#together, handled) : "not tried";
    if (failure === undefined) return;
    if (isTransient(failure)) throw failure;
    for (const event of handled) {
      const handler = this.#handlers[event.type]!;
      if (parked.has(entityKey(event))) {
        await park(tx, this.#subscription, event, "waits behind a parked event of the same entity");
        continue;
      }
      const error = await applyInSavepoint(tx, handler, event);
      if (error === undefined) continue;
      if (isTransient(error)) throw error;
      parked.add(entityKey(event));
      await park(tx, this.#subscription, event, reasonOf(error));
      this.#log.error(
        {
          eventType: event.type,
          eventUid: event.uid,
          entityUid: event.entityUid,
          requestId: event.requestId,
          traceId: parseTraceparent(event.traceparent)?.traceId,
          error,
        },
        "an event was parked",
      );
    }
  }

  async #readCursor(sql: Sql, lock: "" | "FOR UPDATE" = ""): Promise<Cursor | undefined> {
    const select = `SELECT log_uid AS "logUid", position, parked_reason AS "parkedReason" FROM stream.feed_cursors
                     WHERE reader = $1 AND source = $2 ${lock}`;
    const { rows } = await sql.query<Cursor>(select, [this.#deps.name, this.#deps.source]);
    return rows[0];
  }

  async #lockCursor(tx: Sql): Promise<Cursor> {
    const cursor = await this.#readCursor(tx, "FOR UPDATE");
    if (cursor) return cursor;
    await tx.query("INSERT INTO stream.feed_cursors (reader, source) VALUES ($1, $2) ON CONFLICT DO NOTHING", [
      this.#deps.name,
      this.#deps.source,
    ]);
    return this.#lockCursor(tx);
  }

  async #writeCursor(tx: Sql, { logUid, position, parkedReason }: Cursor): Promise<void> {
    await tx.query(
      `UPDATE stream.feed_cursors SET log_uid = $3, position = $4, parked_reason = $5, updated_at = $6 WHERE reader = $1 AND source = $2`,
      [this.#deps.name, this.#deps.source, logUid, position, parkedReason, this.#deps.clock.now()],
    );
  }
}

/** What an event makes its reader do goes on with the trace that the event came from. */
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

/** The same of many events: one span, linked to what brought each about. */
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

/** "run" of "millwright.run.created.v1". */
const entityOf = (type: string): string => type.split(".")[1] ?? "";

function whyUnreadable(cursor: Cursor, page: FeedPage): string | undefined {
  if (cursor.logUid !== null && cursor.logUid !== page.logUid) return "log_replaced";
  if (cursor.position > page.head) return "cursor_beyond_head";
  return undefined;
}
