import type { FeedReader, StoredEvent } from "@millwright/events";

/** Titles of runs by uid; unknown runs are left out. */
export type FindTitles = (runUids: readonly string[]) => Promise<Readonly<Record<string, string>>>;

/**
 * Adds a title to every dispatched run of the orchestrator's feed. Events contain only explicit titles, because
 * generated ones would disclose the prompt; the others are read here, outside of any transaction.
 */
export const withTitles =
  (read: FeedReader, findTitles: FindTitles): FeedReader =>
  async (range) => {
    const page = await read(range);
    const untitled = page.events.filter(lacksTitle).map(({ entityUid }) => entityUid);
    if (untitled.length === 0) return page;
    const titles = await findTitles(untitled);
    return {
      ...page,
      events: page.events.map((event) =>
        lacksTitle(event) ? { ...event, payload: { ...event.payload, title: titles[event.entityUid] ?? "" } } : event,
      ),
    };
  };

const lacksTitle = ({ type, payload }: StoredEvent): boolean =>
  type === "millwright.run.created.v1" && payload["origin"] === "dispatch" && payload["title"] === undefined;
