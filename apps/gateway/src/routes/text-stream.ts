import { Readable } from "node:stream";
import { bindScope } from "@millwright/telemetry";
import { stream, type Reply, type RequestInfo } from "../rest/index.ts";

/** How long a reader may take nothing of what is ready for it. Its connection is closed then. */
const STUCK_MS = 30_000;

/**
 * Streams texts at the speed of the reader: the next text is requested when there is room for it. A reader that takes nothing for `stuckMs` is
 * disconnected; so is every reader when the source fails, which makes the answer incomplete for its client.
 */
export const textStreamReply = (
  contentType: string,
  { raw }: RequestInfo,
  texts: AsyncIterable<string>,
  {
    headers = {},
    stuckMs = STUCK_MS,
  }: { headers?: Readonly<Record<string, string>>; stuckMs?: number | undefined } = {},
): Reply => stream(contentType, Readable.from(bindScope(givingUp(texts, stuckMs, () => raw.res.destroy()))), headers);

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
