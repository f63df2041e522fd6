import type { Clock } from "@millwright/clock";
import type { Database } from "@millwright/database";
import type { Consumer } from "@millwright/events";
import { readAppliedAt, readOldestPendingChange, type FeedOfReader } from "./store/freshness-store.ts";
import { RECORD_DELIVERY } from "./usecases/record-deliveries.ts";

export type FollowedFeed = { readonly feed: FeedOfReader; readonly consumer: Consumer };

/** Returns a function that returns the time up to which responses include changes of runs and pull requests. */
export function freshnessOf(database: Database, clock: Clock, feeds: readonly FollowedFeed[]): () => Promise<Date> {
  const readers = feeds.map((each) => readTimeOf(database, clock, each));
  return async () => {
    const [pendingSince, ...readAt] = await Promise.all([
      readOldestPendingChange(database.sql, RECORD_DELIVERY, clock.now()),
      ...readers.map((read) => read()),
    ]);
    const times = [...(pendingSince ? [pendingSince] : []), ...readAt];
    return new Date(Math.min(...times.map((time) => time.getTime())));
  };
}

/** The time up to which a feed was read. */
function readTimeOf(database: Database, clock: Clock, { feed, consumer }: FollowedFeed): () => Promise<Date> {
  let readAt: Date | undefined;
  return async () => {
    const progress = consumer.progress();
    // Between two pages it is not known how old the rest is: the previous time remains valid.
    if (progress && (progress.lagEvents === 0 || progress.lagSeconds > 0))
      readAt = new Date(clock.now().getTime() - 1000 * Math.max(progress.lagSeconds, progress.secondsSinceRead));
    return readAt ?? (await readAppliedAt(database.sql, feed)) ?? new Date(0);
  };
}
