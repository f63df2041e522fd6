import type { Reply, RequestInfo } from "../../rest/index.ts";
import { textStreamReply } from "./text-stream.ts";

/** Returns one server-sent event. `data` is JSON on a single line. */
export const sseEvent = (id: number, event: string, data: unknown): string =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** A comment that prevents proxies from closing an idle connection. */
export const SSE_KEEP_ALIVE = ": keep-alive\n\n";

/** Returns whether the client requests a stream of server-sent events. */
export const wantsStream = ({ headers }: RequestInfo): boolean => /text\/event-stream/.test(headers.accept ?? "");

/**
 * Returns the id of the event after which the client resumes, or undefined if it sent none. Ids that are not sequence
 * numbers are ignored.
 */
export function lastEventId({ headers }: RequestInfo): number | undefined {
  const last = headers["last-event-id"];
  return typeof last === "string" && /^\d{1,15}$/.test(last) ? Number(last) : undefined;
}

/** Returns a stream of server-sent events with backpressure; see `textStreamReply`. */
export const eventStreamReply = (request: RequestInfo, texts: AsyncIterable<string>, stuckMs?: number): Reply =>
  textStreamReply("text/event-stream; charset=utf-8", request, texts, {
    headers: { "x-accel-buffering": "no" },
    stuckMs,
  });
