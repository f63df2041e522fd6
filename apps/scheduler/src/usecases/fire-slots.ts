import { isDomainError } from "@millwright/errors";
import type { Logger } from "@millwright/telemetry";
import type { Schedule } from "../domain/schedule.ts";
import { causeKeyOf, decideAlone, decideOverlap, type ClaimedSlot, type Decision } from "../domain/slot.ts";

export type Decided = { readonly slot: ClaimedSlot; readonly decision: Decision };

export type FireSlotsDeps = {
  slots: { settle(lease: string, decided: readonly Decided[]): Promise<void> };
  runs: {
    /** Makes the runs of slots whose schedules have one creator and owner, all or none, in this order; a slot that made one before answers that. */
    create(slots: readonly ClaimedSlot[]): Promise<string[]>;
    /** Runs of the schedule that have not ended. */
    live(schedule: Schedule): Promise<string[]>;
    /** Errors: run_already_finished, run_pending (conflict), run_not_cancellable (unsupported). */
    cancel(schedule: Schedule, runUid: string, cause: string): Promise<void>;
  };
  log: Logger;
  /** Divides every wait; for tests of failures. */
  timeScale: number;
};

/** Runs made by one call, and the text of their prompts. */
const BATCH = 250;
const BATCH_TEXT_CHARACTERS_MAX = 16 * 1024 * 1024;
/** Batches under way at once, of calls as of slots whose upstream services are asked one by one: more wait for each other in the same index pages. */
const AT_ONCE = 2;
const RETRY_MS = [1_000, 2_000, 5_000, 10_000, 30_000];
/** How soon a slot that waits for other runs looks again, when no event rings. */
const LOOK_AGAIN_MS = 5_000;
/** A run is PENDING for about so long. */
const PENDING_MS = 500;

/**
 * Decides about leased slots and writes down what was decided, batch by batch. Dies it in between, the lease ends and another
 * replica decides; a run that was made already is found by its cause.
 */
export async function fireSlots(deps: FireSlotsDeps, lease: string, slots: readonly ClaimedSlot[]): Promise<void> {
  const alone = slots.flatMap((slot) => decided(slot, decideAlone(slot)));
  if (alone.length > 0) await deps.slots.settle(lease, alone);
  const settledAlone = new Set(alone.map(({ slot }) => slot));
  const left = slots.filter((slot) => !settledAlone.has(slot));

  const free = left.filter(({ schedule }) => schedule.overlapPolicy === "allow");
  const looking = left.filter(({ schedule }) => schedule.overlapPolicy !== "allow");
  const batches = [
    ...Map.groupBy(
      free,
      ({ schedule: { creator, owner } }) => `${creator.type} ${creator.uid} ${owner.type} ${owner.uid}`,
    ).values(),
  ].flatMap(batchesOf);
  await inParallel([
    ...batches.map((batch) => async () => deps.slots.settle(lease, await fireBatch(deps, batch))),
    ...looking.map((slot) => async () => deps.slots.settle(lease, await fireAfterLook(deps, slot))),
  ]);
}

/** In order. A prompt that is larger than a batch is a batch of its own. */
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

/** All of them at once; where one is refused, each by itself. */
async function fireBatch(deps: FireSlotsDeps, batch: readonly ClaimedSlot[]): Promise<Decided[]> {
  try {
    const runUids = await deps.runs.create(batch);
    return batch.map((slot, index) => ({ slot, decision: { state: "fired", runUid: runUids[index]! } }));
  } catch (error) {
    if (isFinal(error) && batch.length > 1) {
      const alone: Decided[] = [];
      for (const slot of batch) alone.push(...(await fireBatch(deps, [slot])));
      return alone;
    }
    return batch.map((slot) => ({ slot, decision: failure(deps, slot, error) }));
  }
}

/** Looks for live runs of the schedule first. */
async function fireAfterLook(deps: FireSlotsDeps, slot: ClaimedSlot): Promise<Decided[]> {
  const { schedule } = slot;
  const { overlapPolicy: policy } = schedule;
  if (policy === "allow") return fireBatch(deps, [slot]);
  // A slot that came while another waits has been waited for enough.
  if (policy === "buffer_one" && slot.state === "due" && slot.hasBuffered)
    return [{ slot, decision: { state: "skipped", reason: "overlap" } }];
  try {
    const live = await deps.runs.live(schedule);
    if (live.length > 0) {
      const decision = decideOverlap(policy, slot, LOOK_AGAIN_MS / deps.timeScale);
      if (decision !== "cancel the others") return [{ slot, decision }];
      for (const runUid of live) await cancelLive(deps, slot, runUid);
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

/** Asked again, the answer would be the same. */
const isFinal = (error: unknown): boolean =>
  isDomainError(error) && !["unavailable", "internal", "rate_limited", "unauthenticated"].includes(error.kind);

function failure(
  { log, timeScale }: FireSlotsDeps,
  { state, tries, scheduleUid }: ClaimedSlot,
  error: unknown,
): Decision {
  if (isFinal(error)) return { state: "skipped", reason: "spawn_failed", message: (error as Error).message };
  const afterMs = RETRY_MS[Math.min(tries, RETRY_MS.length) - 1]! / timeScale;
  log.warn({ error, scheduleUid }, "a slot made no run yet; it is tried again");
  return { state, afterMs, message: "The orchestrator did not answer; tried again." };
}

async function inParallel(tasks: readonly (() => Promise<void>)[]): Promise<void> {
  const left = tasks.values();
  const work = async (): Promise<void> => {
    for (const task of left) await task();
  };
  const results = await Promise.allSettled(Array.from({ length: Math.min(AT_ONCE, tasks.length) }, work));
  for (const result of results) if (result.status === "rejected") throw result.reason;
}
