import type { Clock } from "@millwright/clock";
import type { EventHandlers, EventsHandlers, StoredEvent } from "@millwright/events";
import { omitUndefined } from "@millwright/json";
import { trackRunEnd, trackRunStarts, type RunStart } from "../usecases/track-runs.ts";
import { causedBy } from "./origin.ts";

/** Handles events of runs: a dispatched run creates a task, and the cancellation of its current run cancels it. */
export const onRunEvents = (clock: Clock): { handlers: EventHandlers; batchHandlers: EventsHandlers } => ({
  batchHandlers: {
    "millwright.run.created.v1": (tx, events) =>
      trackRunStarts(
        tx,
        clock,
        events.map((event) => ({ run: runStart(event), origin: causedBy(event) })),
      ),
  },
  handlers: {
    "millwright.run.finished.v1": (tx, event) => {
      const text = textsOf(event);
      return trackRunEnd(tx, causedBy(event), clock, {
        runUid: required(text("run_uid")),
        version: event.entityVersion,
        state: text("state") ?? "",
      });
    },
  },
});

function runStart(event: StoredEvent): RunStart {
  const text = textsOf(event);
  return {
    runUid: required(text("run_uid")),
    conversationUid: required(text("conversation_uid")),
    startedByUid: event.actor.uid,
    title: text("title") ?? "",
    ...omitUndefined({
      parentRunUid: text("parent_run_uid"),
      retryOfRunUid: text("retry_of_run_uid"),
      origin: text("origin"),
      factoryUid: text("factory_uid"),
      teamUid: event.teamUid,
      ticketSource: text("ticket_source"),
      ticketId: text("ticket_id"),
    }),
  };
}

const textsOf =
  ({ payload }: StoredEvent) =>
  (name: string): string | undefined => {
    const value = payload[name];
    return typeof value === "string" && value !== "" ? value : undefined;
  };

function required(text: string | undefined): string {
  if (text === undefined) throw new Error("the event lacks a required uid");
  return text;
}
