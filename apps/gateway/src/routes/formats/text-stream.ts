import { Readable } from "node:stream";
import { bindScope } from "@millwright/telemetry";
import { stream, type Reply, type RequestInfo } from "../../rest/index.ts";

/** Milliseconds after which a client that reads nothing of the pending text is disconnected. */
const STUCK_MS = 30_000;

/**
 * Streams texts with backpressure: requests the next text when the buffer has space. Disconnects a client that reads
 * nothing for `stuckMs` milliseconds. Disconnects the client too if the source fails, so that it detects an incomplete
 * response.
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
