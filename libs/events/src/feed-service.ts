import type { CallOptions, Client, ServiceImpl } from "@connectrpc/connect";
import type { events } from "@millwright/contracts";
import type { EventLog } from "./event-log.ts";
import type { FeedReader } from "./event.ts";
import { toEvent, toMessage } from "./feed-messages.ts";

/** Maximum wait of a read; a reader that waits longer reads again, because proxies and deadlines cut long calls. */
const WAIT_MS_MAX = 25_000;
const LIMIT_DEFAULT = 200;

/** Serves the feed of a service's own events; register it under `events.EventFeedService`. */
export function serveEventFeed(log: EventLog): ServiceImpl<typeof events.EventFeedService> {
  return {
    async read({ after, limit, waitMs, types }, { signal }) {
      const page = await log.read({
        after: Number(after),
        limit: limit > 0 ? limit : LIMIT_DEFAULT,
        waitMs: Math.min(Math.max(waitMs, 0), WAIT_MS_MAX),
        signal,
        types,
      });
      return {
        logUid: page.logUid,
        head: BigInt(page.head),
        first: BigInt(page.first ?? 0),
        through: BigInt(page.through),
        events: page.events.map(toMessage),
      };
    },
  };
}

/**
 * Returns a reader of an upstream service's feed. `options` returns the caller's headers and deadline for each call.
 */
export function feedReader(
  client: Client<typeof events.EventFeedService>,
  options: () => CallOptions = () => ({}),
): FeedReader {
  return async ({ after, limit, waitMs = 0, types = [], signal }) => {
    const range = { after: BigInt(after), limit, waitMs, types: [...types] };
    const page = await client.read(range, { ...options(), ...(signal && { signal }) });
    const found = page.events.map(toEvent);
    return {
      logUid: page.logUid,
      head: Number(page.head),
      ...(page.first > 0n && { first: Number(page.first) }),
      through: Number(page.through) || (found.at(-1)?.position ?? after),
      events: found,
    };
  };
}
