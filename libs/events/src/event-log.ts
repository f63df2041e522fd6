import type { Clock } from "@millwright/clock";
import { BackgroundLoop, isTransient, type Database } from "@millwright/database";
import type { Logger } from "@millwright/telemetry";
import { EVENTS_APPENDED } from "./append-events.ts";
import type { WakeupBus } from "./wakeup-bus.ts";
import type { FeedPage, FeedRange, StoredEvent } from "./event.ts";
import { deleteExpiredEvents } from "./expired-events.ts";
import { sequence } from "./sequencer.ts";

export type EventLogDeps = {
  database: Database;
  clock: Clock;
  log: Logger;
  /** Notified of each type of the events that were moved into the log. */
  wakeups?: WakeupBus;
  /** For how many days events are retained; absent: forever. */
  retentionDays?: number | undefined;
};

/**
 * How long a committed event may remain unnoticed without a wake-up: if the replica that committed it died at once.
 */
const POLL_MS = 1_000;
/** While commits follow each other, their events are collected for this long; the first of them is moved at once. */
const REST_MS = 50;
const LIMIT_MAX = 1000;
const PRUNE_EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;
/** Maximum number of events that are scanned per read with a type filter. */
const LOOKED_THROUGH_MAX = 10_000;

/** The log of one service's own events: runs the sequencer and serves readers. */
export class EventLog {
  readonly #deps: EventLogDeps;
  readonly #loop: BackgroundLoop;
  readonly #pruner: BackgroundLoop;
  readonly #waiting = new Set<() => void>();
  #head = 0;
  #isStopped = false;
  #lastTurn: Promise<unknown> = Promise.resolve();
  #nextTurn: Promise<void> | undefined;
  #unsubscribe: () => void = () => {};

  constructor(deps: EventLogDeps) {
    this.#deps = deps;
    this.#loop = new BackgroundLoop({
      everyMs: POLL_MS,
      restMs: REST_MS,
      step: async () => {
        await this.#advance();
        return "idle";
      },
      onError: (error) =>
        deps.log[isTransient(error) ? "warn" : "error"](
          { component: "sequencer", error },
          "the sequencer failed; it will be retried",
        ),
    });
    this.#pruner = new BackgroundLoop({
      everyMs: PRUNE_EVERY_MS,
      step: async () => ((await this.prune()) ? "again" : "idle"),
      onError: (error) => deps.log.warn({ component: "event log pruner", error }, "deleting expired events failed"),
    });
  }

  /** Deletes a batch of expired events; `start` repeats it. Returns whether there may be more. */
  async prune(): Promise<boolean> {
    const { database, clock, retentionDays } = this.#deps;
    if (retentionDays === undefined) return false;
    return deleteExpiredEvents(database, new Date(clock.now().getTime() - retentionDays * DAY_MS));
  }

  /** Starts sequencing: after each commit that announced events, and by polling. */
  start(): void {
    this.#isStopped = false;
    this.#unsubscribe = this.#deps.database.onCommit((topics) => topics.has(EVENTS_APPENDED) && this.wake());
    this.#loop.start();
    if (this.#deps.retentionDays !== undefined) this.#pruner.start();
  }

  /** Stops the sequencer of this process and ends every wait. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#unsubscribe();
    this.#wakeAll();
    await Promise.all([this.#loop.stop(), this.#pruner.stop()]);
  }

  /** Wakes the sequencer for events of a transaction that could not announce them (Prisma). */
  wake(): void {
    this.#loop.wake();
  }

  /**
   * Returns the newest position. It includes everything committed before the call, unless another process is moving it
   * at this moment.
   */
  async head(): Promise<number> {
    await this.#advance();
    return this.#head;
  }

  /** Reads committed events after a position. An `after` beyond the head returns at once: the caller must check it. */
  async read({ after, limit, waitMs = 0, types = [], signal }: FeedRange): Promise<FeedPage> {
    await this.#advance();
    const deadline = Date.now() + waitMs;
    for (;;) {
      const page = await this.#page(after, Math.min(Math.max(limit, 1), LIMIT_MAX), types);
      const leftMs = deadline - Date.now();
      if (page.through > after || after > page.head || leftMs <= 0 || signal?.aborted || this.#isStopped) return page;
      if (this.#head <= page.head) await this.#growth(leftMs, signal);
    }
  }

  /**
   * Resolves when the log has grown (as far as this process knows), after `timeoutMs`, when stopped, or when aborted;
   * never rejects.
   */
  async growth(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    if (!signal?.aborted && !this.#isStopped) await this.#growth(timeoutMs, signal);
  }

  async #page(after: number, limit: number, types: readonly string[]): Promise<FeedPage> {
    const { rows } = await (types.length === 0
      ? this.#deps.database.sql.query<PageRow>(PAGE, [after, limit])
      : this.#deps.database.sql.query<PageRow>(PAGE_OF_TYPES, [after, limit, JSON.stringify(types)]));
    const { logUid = "", head = 0, first = 1 } = rows[0] ?? {};
    const events = rows.flatMap((row) => (row.position === null ? [] : [toEvent(row)]));
    const last = events.at(-1)?.position ?? after;
    return {
      logUid,
      head,
      first,
      through:
        types.length === 0 || events.length === limit
          ? last
          : Math.max(after, Math.min(head, after + LOOKED_THROUGH_MAX)),
      events,
    };
  }

  /** One run of the sequencer that starts after this call; concurrent callers share it. */
  #advance(): Promise<void> {
    if (this.#nextTurn) return this.#nextTurn;
    const turn = this.#lastTurn.then(() => this.#turn());
    this.#nextTurn = turn;
    this.#lastTurn = turn.catch(() => {});
    return turn;
  }

  async #turn(): Promise<void> {
    this.#nextTurn = undefined;
    const { head, types } = await sequence(this.#deps.database, this.#deps.clock.now());
    const hasGrown = head > this.#head;
    this.#head = head;
    if (hasGrown) this.#wakeAll();
    for (const type of types) this.#deps.wakeups?.notify(type);
  }

  #growth(timeoutMs: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const end = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", end);
        this.#waiting.delete(end);
        resolve();
      };
      const timer = setTimeout(end, timeoutMs);
      signal?.addEventListener("abort", end);
      this.#waiting.add(end);
    });
  }

  #wakeAll(): void {
    for (const wake of this.#waiting) wake();
  }
}

/** Uses one statement, so that head and events are consistent; an empty page is one row without a position. */
const page = (which: string): string => `
  SELECT m.log_uid AS "logUid", m.head,
         coalesce((SELECT position FROM stream.event_log ORDER BY position LIMIT 1), m.head + 1) AS first, e.uid, e.position, e.type, e.entity, e.entity_uid AS "entityUid", e.entity_version AS "entityVersion",
         e.team_uid AS "teamUid", e.actor_type AS "actorType", e.actor_uid AS "actorUid", e.request_id AS "requestId", e.cause,
         e.traceparent, e.occurred_at AS "occurredAt", e.payload
    FROM stream.event_meta AS m
    LEFT JOIN LATERAL (SELECT * FROM stream.event_log WHERE position > $1 ${which} ORDER BY position LIMIT $2) AS e ON true
   ORDER BY e.position`;
const PAGE = page("");
const PAGE_OF_TYPES = page(
  `AND position <= $1 + ${LOOKED_THROUGH_MAX} AND type IN (SELECT jsonb_array_elements_text($3::jsonb))`,
);

type EventRow = Omit<StoredEvent, "actor" | "teamUid" | "cause" | "traceparent"> & {
  actorType: string;
  actorUid: string;
  teamUid: string | null;
  cause: string | null;
  traceparent: string | null;
};
type PageRow = { logUid: string; head: number; first: number } & EventRow & { position: number | null };

function toEvent(row: EventRow): StoredEvent {
  return {
    uid: row.uid,
    position: row.position,
    type: row.type,
    entity: row.entity,
    entityUid: row.entityUid,
    entityVersion: row.entityVersion,
    requestId: row.requestId,
    occurredAt: row.occurredAt,
    payload: row.payload,
    actor: { type: row.actorType, uid: row.actorUid },
    teamUid: row.teamUid ?? undefined,
    cause: row.cause ?? undefined,
    traceparent: row.traceparent ?? undefined,
  };
}
