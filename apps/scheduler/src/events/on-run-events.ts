import type { EventHandlers, EventsHandlers, StoredEvent } from "@millwright/events";
import { slotOfCause } from "../domain/slot.ts";
import type { DatabaseTime } from "../store/database-time.ts";
import { recordRunEnd, recordRuns } from "../store/slot-store.ts";

export type OnRunEventsDeps = {
  databaseTime: DatabaseTime;
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
      if (runs.length > 0) await recordRuns(tx, runs);
    },
  },
  handlers: {
    "millwright.run.finished.v1": async (tx, event) => {
      const succeededAt = succeeded(event) ? event.occurredAt : null;
      await recordRunEnd(tx, deps.databaseTime, { runUid: event.entityUid, succeededAt });
      deps.wake();
    },
  },
});

const succeeded = ({ payload }: StoredEvent): boolean => payload["state"] === "SUCCEEDED";
