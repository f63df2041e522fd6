import type { FeedReader } from "@millwright/events";

/** The orchestrator's feed with only the news of scheduled runs; what it tells of others is passed over like an event that nobody handles. */
export const ofScheduledRuns =
  (read: FeedReader): FeedReader =>
  async (range) => {
    const page = await read(range);
    return {
      ...page,
      events: page.events.map((event) =>
        event.payload["source"] === "SCHEDULED_AGENT" ? event : { ...event, type: OF_OTHERS },
      ),
    };
  };

const OF_OTHERS = "millwright.run.of_others.v1";
