import type { Sql } from "@millwright/database";
import type { EventHandler, StoredEvent } from "@millwright/events";
import { slotOfCause } from "../domain/slot.ts";

export type OnRunEventsDeps = {
  noteRun(tx: Sql, made: { scheduleUid: string; slotAt: Date; runUid: string; now: Date }): Promise<void>;
  noteRunEnd(tx: Sql, ended: { runUid: string; succeededAt: Date | null }): Promise<void>;
  /** Slots may be waiting for the run that has ended. */
  ring(): void;
};

/** Reactions to the orchestrator's facts: a run tells which slot it is of, whatever became of the answer to its creation, and when it ended. */
export const onRunEvents = (deps: OnRunEventsDeps): Record<string, EventHandler> => ({
  "millwright.run.created.v1": async (tx, event) => {
    const slot = slotOfCause(event.cause ?? "");
    if (slot) await deps.noteRun(tx, { ...slot, runUid: event.entityUid, now: event.occurredAt });
  },
  "millwright.run.finished.v1": async (tx, event) => {
    await deps.noteRunEnd(tx, { runUid: event.entityUid, succeededAt: succeeded(event) ? event.occurredAt : null });
    deps.ring();
  },
});

const succeeded = ({ payload }: StoredEvent): boolean => payload["state"] === "SUCCEEDED";
