import { outsideScopes } from "@millwright/telemetry";
import { topics, type Wakeups } from "../../storage/wakeups.ts";
import type { Offer, LeaseRef, WorkerSession } from "../../runs/domain/worker-session.ts";

export type LeaseWorkDeps = {
  /** Returns whether any execution is queued. */
  hasQueued(): Promise<boolean>;
  /** Offers queued executions to a worker, up to its free slots. */
  claim(session: WorkerSession, freeSlots: number): Promise<readonly Offer[]>;
  /** Queues executions again that were offered to a worker which has disconnected. */
  decline(session: WorkerSession, offers: readonly LeaseRef[]): Promise<void>;
  readonly wakeups: Wakeups;
  /** How often waiting polls query for work without a notification, in milliseconds. */
  readonly pollMs: number;
  /** Maximum duration of a wait, in milliseconds. */
  readonly waitMsMax: number;
};

type Poll = {
  readonly session: WorkerSession;
  readonly freeSlots: number;
  /** The wait time has elapsed: the result of the claim in progress is returned, even if it is empty. */
  isLate: boolean;
  isBeingServed: boolean;
  /** Returns false if the worker has disconnected. */
  settle(offers: readonly Offer[]): boolean;
  fail(error: unknown): void;
};

/**
 * Serves the long polls of workers. One loop per process claims work for all waiting polls, one after the other, so
 * that a notification does not make a thousand idle workers query at the same time. A claim without a result ends the turn
 * if the queue is empty.
 */
export class LeaseWork {
  readonly #deps: LeaseWorkDeps;
  readonly #polls = new Set<Poll>();
  /** The newest waiting poll of each session. */
  readonly #pollsBySession = new Map<string, Poll>();
  #isServing = false;
  #isNotified = false;
  #timer: NodeJS.Timeout | undefined;
  readonly #unsubscribe: () => void;

  constructor(deps: LeaseWorkDeps) {
    this.#deps = deps;
    this.#unsubscribe = deps.wakeups.subscribe(topics.work, () => this.#notify());
  }

  /**
   * Waits up to `waitMs` for work. A worker that is draining or has no free slot receives none. Does not wait if
   * `signal` is aborted.
   */
  lease(session: WorkerSession, freeSlots: number, waitMs: number, signal: AbortSignal): Promise<readonly Offer[]> {
    if (session.state === "DRAINING" || freeSlots <= 0 || signal.aborted) return Promise.resolve([]);
    return new Promise((resolve, reject) => {
      let isOpen = true;
      const close = (): boolean => {
        if (!isOpen) return false;
        isOpen = false;
        clearTimeout(timer);
        signal.removeEventListener("abort", end);
        this.#polls.delete(poll);
        if (this.#pollsBySession.get(session.uid) === poll) this.#pollsBySession.delete(session.uid);
        return true;
      };
      const settle = (offers: readonly Offer[]): boolean => {
        const wasOpen = close();
        if (wasOpen) resolve(offers);
        return wasOpen;
      };
      const end = (): void => void settle([]);
      const poll: Poll = {
        session,
        freeSlots,
        isLate: false,
        isBeingServed: false,
        settle,
        fail: (error) => void (close() && reject(error)),
      };
      const timer = setTimeout(
        () => {
          poll.isLate = true;
          if (!poll.isBeingServed) end();
        },
        Math.min(waitMs, this.#deps.waitMsMax),
      );
      signal.addEventListener("abort", end);
      this.#polls.add(poll);
      this.#pollsBySession.set(session.uid, poll);
      this.#notify();
    });
  }

  /** Returns whether a poll of the session is waiting at this replica: it will be served as soon as there is work. */
  isWaiting(sessionUid: string): boolean {
    return this.#pollsBySession.has(sessionUid);
  }

  /** Ends all waits. */
  stop(): void {
    this.#unsubscribe();
    clearTimeout(this.#timer);
    for (const poll of [...this.#polls]) poll.settle([]);
  }

  #notify(): void {
    this.#isNotified = true;
    // The loop serves all polls, so it runs outside the scope of the request that started it.
    if (!this.#isServing) void outsideScopes(() => this.#serve());
  }

  async #serve(): Promise<void> {
    this.#isServing = true;
    clearTimeout(this.#timer);
    while (this.#isNotified) {
      this.#isNotified = false;
      let isCheckDue = false; // the first claim is the check, so that work for it is not delayed
      for (const poll of [...this.#polls]) {
        if (isCheckDue && !(await this.#hasQueued())) break;
        isCheckDue = !(await this.#serveOne(poll));
      }
    }
    this.#isServing = false;
    if (this.#polls.size > 0) this.#timer = setTimeout(() => this.#notify(), this.#deps.pollMs);
  }

  /** Returns true if the check fails, so that the error of the claim reaches the worker. */
  #hasQueued(): Promise<boolean> {
    return this.#deps.hasQueued().catch(() => true);
  }

  /** Returns whether the worker received offers. */
  async #serveOne(poll: Poll): Promise<boolean> {
    if (!this.#polls.has(poll)) return false;
    poll.isBeingServed = true;
    try {
      const offers = await this.#deps.claim(poll.session, poll.freeSlots);
      poll.isBeingServed = false;
      const isResult = offers.length > 0 || poll.isLate;
      if (isResult && !poll.settle(offers) && offers.length > 0) await this.#deps.decline(poll.session, offers);
      return offers.length > 0;
    } catch (error) {
      poll.fail(error);
      return false;
    }
  }
}
