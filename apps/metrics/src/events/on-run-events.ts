import type { Clock } from "@millwright/clock";
import type { EventHandlers, EventsHandler, EventsHandlers } from "@millwright/events";
import { markStale } from "../store/stale-run-store.ts";

/** Marks the runs that events are about: their facts are read again. */
export function onRunEvents({ clock }: { readonly clock: Clock }): {
  handlers: EventHandlers;
  batchHandlers: EventsHandlers;
} {
  const mark: EventsHandler = (tx, events) =>
    markStale(
      tx,
      events.map(({ entityUid: runUid, occurredAt: changedAt }) => ({ runUid, changedAt })),
      clock.now(),
    );
  return {
    handlers: {},
    batchHandlers: {
      "millwright.run.created.v1": mark,
      "millwright.run.state_changed.v1": mark,
      "millwright.run.attempt_ended.v1": mark, // costs that are recorded after the end of the run, for instance after a cancel
      "millwright.run.finished.v1": mark,
    },
  };
}
