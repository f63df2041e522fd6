import type { Clock } from "@millwright/clock";
import { BackgroundLoop } from "@millwright/database";
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
   * Marks the item done within the handler's own transaction, so that its local effect happens once.
   * Throws if the claim was lost; let the transaction roll back.
   */
  finish(tx: Sql): Promise<void>;
};

/**
 * Processes one item. Returning marks it done; throwing retries it later or dead-letters it. May run twice: be
 * idempotent by `item.key`.
 */
export type WorkHandler = (item: WorkItem, context: WorkContext) => Promise<void>;

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
};

/** Kinds of work that share a concurrency limit, and their running items. */
type Pool = { readonly kinds: readonly string[]; readonly slots: number; readonly active: Set<Promise<void>> };

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
  readonly #lanes: readonly Pool[];
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
    const { separate = {} } = deps;
    this.#lanes = [
      {
        kinds: Object.keys(deps.handlers).filter((kind) => separate[kind] === undefined),
        slots: deps.concurrency ?? 4,
        active: new Set(),
      },
      ...Object.entries(separate).map(([kind, slots]) => ({
        kinds: [kind],
        slots,
        active: new Set<Promise<void>>(),
      })),
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
    return this.#lanes.flatMap(({ active }) => [...active]);
  }

  async #claimAndRun(): Promise<number> {
    let claimed = 0;
    for (const lane of this.#lanes) claimed += await this.#claimAndRunIn(lane);
    return claimed;
  }

  async #claimAndRunIn({ kinds, slots, active }: Pool): Promise<number> {
    const free = slots - active.size;
    if (free <= 0) return 0;
    const items = await claim(this.#sql, kinds, free, this.#leaseSeconds, this.#served);
    const teams = new Set(items.map(({ teamUid }) => teamUid ?? NO_TEAM));
    this.#served = [...this.#served.filter((team) => !teams.has(team)), ...teams].slice(-SERVED_MAX);
    for (const item of items) {
      const running = this.#run(item).finally(() => {
        active.delete(running);
        this.wake();
      });
      active.add(running);
    }
    return items.length;
  }

  /** Never throws: an outcome that cannot be recorded is retried when the lease ends. */
  async #run(item: WorkItem): Promise<void> {
    const lost = new AbortController();
    const renewing = setInterval(() => void this.#renewClaim(item, lost), (this.#leaseSeconds * 1000) / 3);
    const signal = AbortSignal.any([lost.signal, this.#stopping.signal]);
    try {
      if (item.attempts > this.#schedule.length + 1) throw new Error("Its process died at every try.");
      await this.#try(item, signal);
      await finish(this.#sql, item);
    } catch (error) {
      await this.#fail(item, error).catch((cause) =>
        this.#deps.log.error({ workKind: item.kind, workId: item.id, error: cause }, "a failed try was not recorded"),
      );
    } finally {
      clearInterval(renewing);
    }
  }

  async #try(item: WorkItem, signal: AbortSignal): Promise<void> {
    const { handlers, tracer } = this.#deps;
    const cause = parseTraceparent(item.traceparent);
    const attributes = { "millwright.work.kind": item.kind, "millwright.work.attempts": item.attempts };
    const fields = { workKind: item.kind, workId: item.id };
    await traced(
      `work ${item.kind}`,
      { tracer, kind: "consumer", parent: cause, links: cause ? [cause] : [], attributes, fields },
      async () => handlers[item.kind]?.(item, { signal, finish: (tx) => finishIn(tx, item) }),
    );
  }

  async #renewClaim(item: WorkItem, lost: AbortController): Promise<void> {
    const isClaimed = await renew(this.#sql, item, this.#leaseSeconds).catch(() => true); // the next renewal decides
    if (!isClaimed) lost.abort(new Error("The claim was lost."));
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
      this.#deps.log.error(fields, "a work item was dead-lettered");
      return;
    }
    const requested = isDomainError(error) ? (error.retryAfterSeconds ?? 0) : 0;
    await postpone(this.#sql, item, Math.max(pause, requested) * (1 + Math.random() / 4), text);
    this.#deps.log.warn(fields, "an item of work failed; it is tried again");
  }
}

async function finishIn(tx: Sql, item: WorkItem): Promise<void> {
  if (!(await finish(tx, item))) throw new Error("The claim was lost.");
}

const describe = (error: unknown): string =>
  (error instanceof Error ? `${error.name}: ${error.message}` : "not an Error").slice(0, 500);
