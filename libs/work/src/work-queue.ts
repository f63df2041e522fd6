import type { Clock } from "@millwright/clock";
import { BackgroundLoop, isTransient } from "@millwright/database";
import type { Database, Sql } from "@millwright/database";
import { isDomainError } from "@millwright/errors";
import { parseTraceparent, traced, type Logger, type Tracer } from "@millwright/telemetry";
import { WORK_ENQUEUED } from "./enqueue-work.ts";
import {
  claim,
  count,
  finish,
  forget,
  NO_TEAM,
  deadLetter,
  postpone,
  release,
  renew,
  restartDeadLettered,
} from "./work-items.ts";
import type { WorkCount, WorkItem } from "./work-items.ts";

export type WorkContext = {
  /** Aborted when the claim was lost or the process stops: return soon, without completing the item. */
  signal: AbortSignal;
  /**
   * Marks the item, or all items of the batch, done within the handler's own transaction, so that its local effect
   * happens once. Throws if a claim was lost; let the transaction roll back.
   */
  finish(tx: Sql): Promise<void>;
};

/**
 * Processes one item. Returning marks it done; throwing retries it later or dead-letters it. May run twice: be
 * idempotent by `item.key`.
 */
export type WorkHandler = (item: WorkItem, context: WorkContext) => Promise<void>;

/** Processes a batch of items of one kind: all of them, or none by throwing. Items that were tried before come one by one. */
export type WorkBatchHandler = (items: readonly WorkItem[], context: WorkContext) => Promise<void>;

export type WorkBatches = {
  readonly sizeMax: number;
  /** Maximum number of concurrent batches of this process. */
  readonly concurrency: number;
  readonly handle: WorkBatchHandler;
};

export type WorkQueueDeps = {
  database: Database;
  clock: Clock;
  log: Logger;
  handlers: Readonly<Record<string, WorkHandler>>;
  /** Records a span per attempt, below the enqueuing request; absent: none. */
  tracer?: Tracer | undefined;
  /** How long the claim of a dead process lasts. Live processes renew theirs. Default 30. */
  leaseSeconds?: number;
  /**
   * Pauses before each further attempt; after the last one the item is dead-lettered. Default 1 s … 1 h, 7 entries.
   */
  retrySchedule?: readonly number[];
  /** Maximum number of concurrent items of this process. Default 4. */
  concurrency?: number;
  /**
   * Kinds that may wait long for external systems, with their own concurrency, so that they do not block other kinds.
   */
  separate?: Readonly<Record<string, number>>;
  /**
   * Kinds that are processed in batches, each with its own concurrency. If a batch fails, its halves are processed
   * separately: an item is dead-lettered for a failure of its own only.
   */
  batches?: Readonly<Record<string, WorkBatches>>;
};

/** Kinds of work that share a concurrency limit, and their running batches. */
type Pool = {
  readonly kinds: readonly string[];
  readonly slots: number;
  /** Items that one slot processes at once. */
  readonly batchSize: number;
  readonly active: Set<Promise<void>>;
};

const RETRY_SCHEDULE_SECONDS = [1, 5, 15, 60, 300, 900, 3600];
const POLL_MS = 1000;
/** Completions within this time are collected, so that one claim refills several slots. */
const REST_MS = 5;
const FORGET_EVERY_MS = 3_600_000;
const KEEP_DONE_DAYS = 7;
/** A team that was served before this many other teams counts as not served. */
const SERVED_MAX = 100;

/** Processes the work that transactions have enqueued; see `enqueueWork`. Any number of replicas may run. */
export class WorkQueue {
  readonly #deps: WorkQueueDeps;
  readonly #sql: Sql;
  readonly #leaseSeconds: number;
  readonly #schedule: readonly number[];
  readonly #loop: BackgroundLoop;
  readonly #pools: readonly Pool[];
  /** Teams in the order in which they were served last. */
  #served: readonly string[] = [];
  #stopping = new AbortController();
  #forgotAtMs = -Infinity;
  #unsubscribe: () => void = () => {};

  constructor(deps: WorkQueueDeps) {
    this.#deps = deps;
    this.#sql = deps.database.sql;
    this.#leaseSeconds = deps.leaseSeconds ?? 30;
    this.#schedule = deps.retrySchedule ?? RETRY_SCHEDULE_SECONDS;
    const { separate = {}, batches = {} } = deps;
    const pool = (kinds: readonly string[], slots: number, batchSize = 1): Pool => {
      return { kinds, slots, batchSize, active: new Set() };
    };
    this.#pools = [
      pool(
        Object.keys(deps.handlers).filter((kind) => separate[kind] === undefined),
        deps.concurrency ?? 4,
      ),
      ...Object.entries(separate).map(([kind, slots]) => pool([kind], slots)),
      ...Object.entries(batches).map(([kind, { concurrency, sizeMax }]) => pool([kind], concurrency, sizeMax)),
    ];
    this.#loop = new BackgroundLoop({
      everyMs: POLL_MS,
      restMs: REST_MS,
      step: () => this.#step(),
      onError: (error) => deps.log.warn({ component: "work", error }, "work could not be claimed"),
    });
  }

  start(): void {
    this.#stopping = new AbortController();
    this.#unsubscribe = this.#deps.database.onCommit((topics) => topics.has(WORK_ENQUEUED) && this.wake());
    this.#loop.start();
  }

  /** Stops claiming, aborts running handlers and waits for them. Unfinished items return to the queue. */
  async stop(): Promise<void> {
    this.#unsubscribe();
    this.#stopping.abort(new Error("The process is stopping."));
    await this.#loop.stop();
    await Promise.all(this.#active());
  }

  wake(): void {
    this.#loop.wake();
  }

  /** Processes everything that is due now and everything that it enqueues. For tests. */
  async drain(): Promise<void> {
    while ((await this.#claimAndRun()) > 0 || this.#active().length > 0) await Promise.all(this.#active());
  }

  /** Restarts dead-lettered items. Returns how many. */
  async replay(kind?: string): Promise<number> {
    const replayed = await restartDeadLettered(this.#sql, kind);
    this.wake();
    return replayed;
  }

  /** Counts unfinished items, for metrics and operators. */
  counts(): Promise<WorkCount[]> {
    return count(this.#sql);
  }

  async #step(): Promise<"again" | "idle"> {
    const nowMs = this.#deps.clock.monotonicMs();
    if (nowMs - this.#forgotAtMs > FORGET_EVERY_MS) {
      await forget(this.#sql, KEEP_DONE_DAYS);
      this.#forgotAtMs = nowMs;
    }
    await this.#claimAndRun();
    return "idle"; // the end of an item wakes the loop: the next claim fills its slot
  }

  #active(): Promise<void>[] {
    return this.#pools.flatMap(({ active }) => [...active]);
  }

  async #claimAndRun(): Promise<number> {
    let claimed = 0;
    for (const pool of this.#pools) claimed += await this.#claimAndRunIn(pool);
    return claimed;
  }

  async #claimAndRunIn({ kinds, slots, batchSize, active }: Pool): Promise<number> {
    const free = slots - active.size;
    if (free <= 0 || kinds.length === 0) return 0;
    const items = await claim(this.#sql, kinds, free * batchSize, this.#leaseSeconds, this.#served);
    const teams = new Set(items.map(({ teamUid }) => teamUid ?? NO_TEAM));
    this.#served = [...this.#served.filter((team) => !teams.has(team)), ...teams].slice(-SERVED_MAX);
    for (let first = 0; first < items.length; first += batchSize) {
      const running = this.#run(items.slice(first, first + batchSize)).finally(() => {
        active.delete(running);
        this.wake();
      });
      active.add(running);
    }
    return items.length;
  }

  /**
   * Never throws: an outcome that cannot be recorded is retried when the lease ends. Items that failed before, or whose
   * process died, are processed one by one, so that one of them does not cost the others all their attempts.
   */
  async #run(items: readonly WorkItem[]): Promise<void> {
    const lost = new AbortController();
    const renewing = setInterval(() => void this.#renewClaims(items, lost), (this.#leaseSeconds * 1000) / 3);
    const signal = AbortSignal.any([lost.signal, this.#stopping.signal]);
    const fresh = items.filter(({ attempts }) => attempts === 1);
    try {
      if (fresh.length > 0) await this.#process(fresh, signal);
      for (const item of items) if (item.attempts > 1) await this.#process([item], signal);
    } finally {
      clearInterval(renewing);
    }
  }

  async #process(items: readonly WorkItem[], signal: AbortSignal): Promise<void> {
    try {
      if (items.some(({ attempts }) => attempts > this.#schedule.length + 1))
        throw new Error("Its process died at every attempt.");
      signal.throwIfAborted();
      await this.#try(items, signal);
      await finish(this.#sql, items);
    } catch (error) {
      const mayPass = isTransient(error) || (isDomainError(error) && error.retryable);
      if (items.length > 1 && !mayPass && !this.#stopping.signal.aborted) {
        const half = Math.ceil(items.length / 2);
        await this.#process(items.slice(0, half), signal);
        await this.#process(items.slice(half), signal);
        return;
      }
      for (const item of items)
        await this.#fail(item, error).catch((cause) =>
          this.#deps.log.error(
            { workKind: item.kind, workId: item.id, error: cause },
            "failed attempt could not be recorded",
          ),
        );
    }
  }

  async #try(items: readonly WorkItem[], signal: AbortSignal): Promise<void> {
    const { handlers, batches, tracer } = this.#deps;
    const [item] = items as [WorkItem];
    const links = items.flatMap(({ traceparent }) => parseTraceparent(traceparent) ?? []);
    const isSingle = items.length === 1;
    const attributes = {
      "millwright.work.kind": item.kind,
      "millwright.work.attempts": item.attempts,
      ...(!isSingle && { "messaging.batch.message_count": items.length }),
    };
    const fields = { workKind: item.kind, ...(isSingle && { workId: item.id }) };
    const context: WorkContext = { signal, finish: (tx) => finishIn(tx, items) };
    const batch = batches?.[item.kind];
    await traced(
      `work ${item.kind}`,
      { tracer, kind: "consumer", parent: isSingle ? links[0] : undefined, links, attributes, fields },
      async () => (batch ? batch.handle(items, context) : handlers[item.kind]?.(item, context)),
    );
  }

  async #renewClaims(items: readonly WorkItem[], lost: AbortController): Promise<void> {
    const claimed = await renew(this.#sql, items, this.#leaseSeconds).catch(() => items.length); // the next renewal decides
    if (claimed === 0) lost.abort(new Error("The claim was lost."));
  }

  async #fail(item: WorkItem, error: unknown): Promise<void> {
    if (this.#stopping.signal.aborted) return release(this.#sql, item);
    const fields = {
      workKind: item.kind,
      workId: item.id,
      attempts: item.attempts,
      traceId: parseTraceparent(item.traceparent)?.traceId,
      error,
    };
    const text = describe(error);
    const pause = this.#schedule[item.attempts - 1];
    if (pause === undefined || (isDomainError(error) && !error.retryable)) {
      await deadLetter(this.#sql, item, text);
      this.#deps.log.error(fields, "work item dead-lettered");
      return;
    }
    const requested = isDomainError(error) ? (error.retryAfterSeconds ?? 0) : 0;
    await postpone(this.#sql, item, Math.max(pause, requested) * (1 + Math.random() / 4), text);
    this.#deps.log.warn(fields, "work item failed; retrying");
  }
}

async function finishIn(tx: Sql, items: readonly WorkItem[]): Promise<void> {
  if ((await finish(tx, items)) < items.length) throw new Error("The claim was lost.");
}

const describe = (error: unknown): string =>
  (error instanceof Error ? `${error.name}: ${error.message}` : "not an Error").slice(0, 500);
