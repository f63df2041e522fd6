import type { Sql } from "@millwright/database";
import type { EventHandlers, EventsHandlers, StoredEvent } from "@millwright/events";
import { slotOfCause } from "../domain/slot.ts";

export type OnRunEventsDeps = {
  noteRuns(tx: Sql, made: readonly { scheduleUid: string; slotAt: Date; runUid: string; now: Date }[]): Promise<void>;
  noteRunEnd(tx: Sql, ended: { runUid: string; succeededAt: Date | null }): Promise<void>;
  /** Slots may be waiting for the run that has ended. */
  wake(): void;
};

/** Reactions to the orchestrator's facts: a run tells which slot it is of, whatever became of the answer to its creation, and when it ended. */
export const onRunEvents = (deps: OnRunEventsDeps): { handlers: EventHandlers; batchHandlers: EventsHandlers } => ({
  batchHandlers: {
    "millwright.run.created.v1": async (tx, events) => {
      const made = events.flatMap(({ cause = "", entityUid: runUid, occurredAt: now }) => {
        const slot = slotOfCause(cause);
        return slot ? [{ ...slot, runUid, now }] : [];
      });
      if (made.length > 0) await deps.noteRuns(tx, made);
    },
  },
  handlers: {
    "millwright.run.finished.v1": async (tx, event) => {
      await deps.noteRunEnd(tx, { runUid: event.entityUid, succeededAt: succeeded(event) ? event.occurredAt : null });
      deps.wake();
    },
  },
});

const succeeded = ({ payload }: StoredEvent): boolean => payload["state"] === "SUCCEEDED";
