import type { Reply, RequestInfo } from "../rest/index.ts";
import { textStreamReply } from "./text-stream.ts";

/** One event. What is in `data` stands on one line. */
export const sseEvent = (id: number, event: string, data: unknown): string =>
  `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** Keeps proxies from thinking that nobody is there. */
export const SSE_KEEP_ALIVE = ": keep-alive\n\n";

/** Whether an events endpoint is to answer with a stream. */
export const wantsStream = ({ headers }: RequestInfo): boolean => /text\/event-stream/.test(headers.accept ?? "");

/** After which event a reader goes on, if it says so; ids that are none of ours count as none. */
export function lastEventId({ headers }: RequestInfo): number | undefined {
  const last = headers["last-event-id"];
  return typeof last === "string" && /^\d{1,15}$/.test(last) ? Number(last) : undefined;
}

/** A stream of server-sent events, at the speed of its reader; see `textStreamReply`. */
export const eventStreamReply = (request: RequestInfo, texts: AsyncIterable<string>, stuckMs?: number): Reply =>
  textStreamReply("text/event-stream; charset=utf-8", request, texts, {
    headers: { "x-accel-buffering": "no" },
    stuckMs,
  });
