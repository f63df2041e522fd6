import type { Sql } from "@millwright/database";
import type { EventHandlers, EventsHandlers, StoredEvent } from "@millwright/events";
import { slotOfCause } from "../domain/slot.ts";

export type OnRunEventsDeps = {
  recordRuns(tx: Sql, runs: readonly { scheduleUid: string; slotAt: Date; runUid: string; now: Date }[]): Promise<void>;
  recordRunEnd(tx: Sql, ended: { runUid: string; succeededAt: Date | null }): Promise<void>;
  /** Wakes the slot loop: slots may be buffered behind the run that has ended. */
  wake(): void;
};

/**
 * Handles events of runs: which slot a run belongs to, also when the response to its creation was lost, and when it
 * ended.
 */
export const onRunEvents = (deps: OnRunEventsDeps): { handlers: EventHandlers; batchHandlers: EventsHandlers } => ({
  batchHandlers: {
    "millwright.run.created.v1": async (tx, events) => {
      const runs = events.flatMap(({ cause = "", entityUid: runUid, occurredAt: now }) => {
        const slot = slotOfCause(cause);
        return slot ? [{ ...slot, runUid, now }] : [];
      });
      if (runs.length > 0) await deps.recordRuns(tx, runs);
    },
  },
  handlers: {
    "millwright.run.finished.v1": async (tx, event) => {
      await deps.recordRunEnd(tx, { runUid: event.entityUid, succeededAt: succeeded(event) ? event.occurredAt : null });
      deps.wake();
    },
  },
});

const succeeded = ({ payload }: StoredEvent): boolean => payload["state"] === "SUCCEEDED";
