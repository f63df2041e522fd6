import { isDomainError } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import type { Schedule } from "../domain/schedule.ts";
import {
  causeKeyOf,
  decideLocally,
  decideOverlap,
  type ClaimedSlot,
  type Decision,
  type LiveRun,
} from "../domain/slot.ts";

export type Decided = { readonly slot: ClaimedSlot; readonly decision: Decision };

export type FireSlotsDeps = {
  slots: { settle(lease: string, decided: readonly Decided[]): Promise<void> };
  runs: {
    /**
     * Creates the runs of slots whose schedules have the same creator and owner: all or none, in order, and one run per
     * slot for repeated calls.
     */
    create(slots: readonly ClaimedSlot[]): Promise<string[]>;
    /** Lists runs of the schedule that have not ended. */
    listLive(schedule: Schedule): Promise<LiveRun[]>;
    /** Errors: run_already_finished, run_pending (conflict), run_not_cancellable (unsupported). */
    cancel(schedule: Schedule, runUid: string, cause: string): Promise<void>;
  };
  log: Logger;
  /** Divides every wait, so that failure tests run faster. */
  timeScale: number;
};

/** Runs created by one call, and the length of their prompts. */
const BATCH = 250;
const BATCH_TEXT_CHARACTERS_MAX = 16 * 1024 * 1024;
/** Concurrent batches and overlap checks: more would contend for the same index pages. */
const CONCURRENCY = 2;
const RETRY_MS = [1_000, 2_000, 5_000, 10_000, 30_000];
/** How soon a slot that waits for other runs is checked again if no event arrives. */
const RECHECK_MS = 5_000;
/** The usual time that a run is PENDING. */
const PENDING_MS = 500;

/**
 * Decides leased slots and stores the decisions batch by batch. If the process dies in between, another replica decides
 * them when the lease ends; a run that exists already is found by its cause.
 */
export async function fireSlots(deps: FireSlotsDeps, lease: string, slots: readonly ClaimedSlot[]): Promise<void> {
  const local = slots.flatMap((slot) => decided(slot, decideLocally(slot)));
  if (local.length > 0) await deps.slots.settle(lease, local);
  const settled = new Set(local.map(({ slot }) => slot));
  const undecided = slots.filter((slot) => !settled.has(slot));

  const unrestricted = undecided.filter(({ schedule }) => schedule.overlapPolicy === "allow");
  const overlapChecked = undecided.filter(({ schedule }) => schedule.overlapPolicy !== "allow");
  const batches = [
    ...Map.groupBy(
      unrestricted,
      ({ schedule: { creator, owner } }) => `${creator.type} ${creator.uid} ${owner.type} ${owner.uid}`,
    ).values(),
  ].flatMap(batchesOf);
  await inParallel([
    ...batches.map((batch) => async () => deps.slots.settle(lease, await fireBatch(deps, batch))),
    ...overlapChecked.map((slot) => async () => deps.slots.settle(lease, await fireAfterOverlapCheck(deps, slot))),
  ]);
}

/** Splits slots into batches, in order. A prompt that is larger than a batch is its own batch. */
function batchesOf(slots: readonly ClaimedSlot[]): ClaimedSlot[][] {
  const batches: ClaimedSlot[][] = [];
  let characters = 0;
  for (const slot of slots) {
    const last = batches.at(-1);
    characters += slot.schedule.prompt.length;
    if (last && last.length < BATCH && characters <= BATCH_TEXT_CHARACTERS_MAX) last.push(slot);
    else {
      batches.push([slot]);
      characters = slot.schedule.prompt.length;
    }
  }
  return batches;
}

const decided = (slot: ClaimedSlot, decision: Decision | undefined): Decided[] =>
  decision ? [{ slot, decision }] : [];

/** Creates all runs in one call; if one is refused, each in its own call. */
async function fireBatch(deps: FireSlotsDeps, batch: readonly ClaimedSlot[]): Promise<Decided[]> {
  try {
    const runUids = await deps.runs.create(batch);
    return batch.map((slot, index) => ({ slot, decision: { state: "fired", runUid: runUids[index]! } }));
  } catch (error) {
    if (isFinal(error) && batch.length > 1) {
      const single: Decided[] = [];
      for (const slot of batch) single.push(...(await fireBatch(deps, [slot])));
      return single;
    }
    return batch.map((slot) => ({ slot, decision: failure(deps, slot, error) }));
  }
}

/** Checks for live runs of the schedule before firing. */
async function fireAfterOverlapCheck(deps: FireSlotsDeps, slot: ClaimedSlot): Promise<Decided[]> {
  const { schedule } = slot;
  const { overlapPolicy: policy } = schedule;
  if (policy === "allow") return fireBatch(deps, [slot]);
  // Only one slot is buffered at a time.
  if (policy === "buffer_one" && slot.state === "due" && slot.hasBuffered)
    return [{ slot, decision: { state: "skipped", reason: "overlap" } }];
  try {
    const live = await deps.runs.listLive(schedule);
    // An earlier attempt created the run after the overlap check, but did not settle the slot.
    const own = live.find(({ causeKey }) => causeKey === causeKeyOf(slot));
    if (own) return [{ slot, decision: { state: "fired", runUid: own.uid } }];
    if (live.length > 0) {
      const decision = decideOverlap(policy, slot, RECHECK_MS / deps.timeScale);
      if (decision !== "cancel_live_runs") return [{ slot, decision }];
      for (const { uid } of live) await cancelLive(deps, slot, uid);
    }
  } catch (error) {
    return [
      {
        slot,
        decision: isPending(error)
          ? { state: slot.state, afterMs: PENDING_MS / deps.timeScale }
          : failure(deps, slot, error),
      },
    ];
  }
  return fireBatch(deps, [slot]);
}

async function cancelLive({ runs }: FireSlotsDeps, slot: ClaimedSlot, runUid: string): Promise<void> {
  await runs.cancel(slot.schedule, runUid, causeKeyOf(slot)).catch((error: unknown) => {
    if (isDomainError(error) && (error.reason === "run_already_finished" || error.kind === "not_found")) return;
    throw error;
  });
}

const isPending = (error: unknown): boolean => isDomainError(error) && error.reason === "run_pending";

/** Returns whether a retry would fail in the same way. */
const isFinal = (error: unknown): boolean =>
  isDomainError(error) && !["unavailable", "internal", "rate_limited", "unauthenticated"].includes(error.kind);

function failure(
  { log, timeScale }: FireSlotsDeps,
  { state, attempts, scheduleUid }: ClaimedSlot,
  error: unknown,
): Decision {
  if (isFinal(error)) return { state: "skipped", reason: "spawn_failed", message: (error as Error).message };
  const afterMs = RETRY_MS[Math.min(attempts, RETRY_MS.length) - 1]! / timeScale;
  log.warn({ error, scheduleUid }, "creating the run of a slot failed; retrying");
  return { state, afterMs, message: "The orchestrator is unavailable; the slot will be retried." };
}

async function inParallel(tasks: readonly (() => Promise<void>)[]): Promise<void> {
  const queue = tasks.values();
  const work = async (): Promise<void> => {
    for (const task of queue) await task();
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(CONCURRENCY, tasks.length) }, work));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}
