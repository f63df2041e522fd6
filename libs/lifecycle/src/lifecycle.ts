import { setTimeout as pause } from "node:timers/promises";

/** A part of a process: how it starts, how it stops, and whether it is ready. */
export type Part = {
  readonly start?: () => void | Promise<void>;
  /** From now on sends its clients to other processes, and still serves. */
  readonly drain?: () => void;
  readonly stop?: () => void | Promise<void>;
  /** Throws, or returns false, if the process should get no new work because of this part. */
  readonly ready?: () => boolean | void | Promise<boolean | void>;
};

export type Readiness = { readonly ready: boolean; readonly checks: Readonly<Record<string, "ok" | "failed">> };

const READY_CHECK_MS = 2_000;
const STOP_GRACE_MS = 10_000;

/**
 * The parts of a process: started in the order they were added, stopped in reverse. Ready only after all have started
 * and before stopping begins.
 */
export class Lifecycle {
  readonly #parts: { name: string; part: Part }[] = [];
  readonly #started: { name: string; part: Part }[] = [];
  #state: "new" | "starting" | "started" | "draining" | "stopping" = "new";
  /** The part that is starting; settles when it has started or failed. */
  #starting: { name: string; settled: Promise<unknown> } | undefined;
  #stopping: Promise<string[]> | undefined;

  add(name: string, part: Part): this {
    if (this.#state !== "new") throw new Error(`cannot add ${name}: the lifecycle has started`);
    this.#parts.push({ name, part });
    return this;
  }

  /** Starts all parts. If one fails, stops those already started and rethrows its error. */
  async start(): Promise<void> {
    if (this.#state !== "new") throw new Error("a lifecycle starts once");
    this.#state = "starting";
    for (const entry of this.#parts) {
      if (this.#isStopping()) return;
      const starting = (async () => entry.part.start?.())().then(() => this.#started.push(entry));
      this.#starting = { name: entry.name, settled: starting.catch(() => {}) };
      try {
        await starting;
      } catch (error) {
        await this.stop();
        throw error;
      }
      this.#starting = undefined;
    }
    if (!this.#isStopping()) this.#state = "started";
  }

  /**
   * Makes a started process unready and drains its parts for `ms`, in which it still serves, while load balancers and DNS
   * forget it. Does nothing in another state.
   */
  async drain(ms: number): Promise<void> {
    if (this.#state !== "started") return;
    this.#state = "draining";
    for (const { part } of this.#started) part.drain?.();
    await pause(ms);
  }

  /**
   * Stops the started parts in reverse order; can be called repeatedly. A part that is still starting is awaited for up
   * to half of `graceMs` and stopped as well. Each part may use the rest of `graceMs`. Returns the names of the parts
   * that failed or did not finish; the others are stopped nevertheless.
   */
  stop(graceMs: number = STOP_GRACE_MS): Promise<string[]> {
    this.#state = "stopping";
    this.#stopping ??= this.#stopAll(graceMs);
    return this.#stopping;
  }

  async ready(): Promise<Readiness> {
    const checked = await Promise.all(
      this.#parts.map(async ({ name, part }) => [name, (await passes(part)) ? "ok" : "failed"] as const),
    );
    const checks = Object.fromEntries(checked);
    return { ready: this.#state === "started" && Object.values(checks).every((check) => check === "ok"), checks };
  }

  #isStopping(): boolean {
    return this.#state === "stopping";
  }

  async #stopAll(graceMs: number): Promise<string[]> {
    const endMs = performance.now() + graceMs;
    const failed: string[] = [];
    const { name: late = "", settled } = this.#starting ?? {};
    if ((await within(graceMs / 2, async () => settled)) === TIMED_OUT) failed.push(late);
    for (let entry = this.#started.pop(); entry; entry = this.#started.pop()) {
      const { name, part } = entry;
      const leftMs = Math.max(endMs - performance.now(), 0);
      const stopped = await within(leftMs, async () => part.stop?.()).then(
        (outcome) => outcome !== TIMED_OUT,
        () => false,
      );
      if (!stopped) failed.push(name);
    }
    return failed;
  }
}

const TIMED_OUT = Symbol("timed out");

async function passes(part: Part): Promise<boolean> {
  if (!part.ready) return true;
  const check = part.ready.bind(part);
  return within(READY_CHECK_MS, async () => check()).then(
    (outcome) => outcome !== false && outcome !== TIMED_OUT,
    () => false,
  );
}

async function within<T>(ms: number, act: () => Promise<T>): Promise<T | typeof TIMED_OUT> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<typeof TIMED_OUT>((resolve) => {
    timer = setTimeout(() => resolve(TIMED_OUT), ms);
  });
  try {
    return await Promise.race([act(), timeout]);
  } finally {
    clearTimeout(timer);
  }
}
