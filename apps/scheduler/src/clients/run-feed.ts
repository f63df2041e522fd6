import type { FeedReader } from "@millwright/events";

/** Limits the orchestrator's feed to events of scheduled runs: other events get a type without a handler. */
export const onlyScheduledRuns =
  (read: FeedReader): FeedReader =>
  async (range) => {
    const page = await read(range);
    return {
      ...page,
      events: page.events.map((event) =>
        event.payload["source"] === "SCHEDULED_AGENT" ? event : { ...event, type: UNHANDLED_TYPE },
      ),
    };
  };

const UNHANDLED_TYPE = "millwright.run.unhandled.v1";
