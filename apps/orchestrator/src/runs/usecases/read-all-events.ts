import type { RunEvent } from "../domain/run-events.ts";

/** Returns at most `limit` events of a run after a sequence number, oldest first. */
export type ListRunEvents = (runUid: string, afterSeq: number, limit: number) => Promise<readonly RunEvent[]>;

const BATCH = 1000;

/** Yields every event of a run up to `lastSeq`, read in batches. */
export async function* readEvents(
  listRunEvents: ListRunEvents,
  runUid: string,
  lastSeq = Number.MAX_SAFE_INTEGER,
): AsyncGenerator<RunEvent> {
  for (let after = 0; ;) {
    const events = await listRunEvents(runUid, after, BATCH);
    for (const event of events) if (event.seq <= lastSeq) yield event;
    const last = events.at(-1);
    if (!last || events.length < BATCH || last.seq >= lastSeq) return;
    after = last.seq;
  }
}

export async function readAllEvents(listRunEvents: ListRunEvents, runUid: string): Promise<RunEvent[]> {
  const events: RunEvent[] = [];
  for await (const event of readEvents(listRunEvents, runUid)) events.push(event);
  return events;
}
