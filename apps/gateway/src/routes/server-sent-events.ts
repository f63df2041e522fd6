import { Readable } from "node:stream";
import { keepScope } from "@millwright/telemetry";
import { stream, type Reply, type RequestInfo } from "../rest/index.ts";

/** How long a reader may take nothing of what is there for it. Its connection ends then, and it may come back for the rest. */
const STUCK_MS = 30_000;

/** One event. What is in `data` stands on one line. */
export const sseEvent = (id: number, event: string, data: unknown): string => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`;

/** Keeps proxies from thinking that nobody is there. */
export const SSE_KEEP_ALIVE = ": keep-alive\n\n";

/** Whether an events endpoint is to answer with a stream. */
export const wantsStream = ({ headers }: RequestInfo): boolean => /text\/event-stream/.test(headers.accept ?? "");

/** After which event a reader goes on, if it says so; ids that are none of ours count as none. */
export function lastEventId({ headers }: RequestInfo): number | undefined {
  const last = headers["last-event-id"];
  return typeof last === "string" && /^\d{1,15}$/.test(last) ? Number(last) : undefined;
}

/**
 * A stream of server-sent events. It is as fast as its reader: the next text is asked for when there is room for it, so a slow reader holds
 * one, and whoever takes nothing for `stuckMs` is disconnected.
 */
export const eventStreamReply = ({ raw }: RequestInfo, texts: AsyncIterable<string>, stuckMs = STUCK_MS): Reply =>
  stream("text/event-stream; charset=utf-8", Readable.from(keepScope(givingUp(texts, stuckMs, () => raw.res.destroy()))), { "x-accel-buffering": "no" });

async function* givingUp(texts: AsyncIterable<string>, stuckMs: number, giveUp: () => void): AsyncGenerator<string> {
  for await (const text of texts) {
    const timer = setTimeout(giveUp, stuckMs);
    try {
      yield text;
    } finally {
      clearTimeout(timer);
    }
  }
}
