import { Readable } from "node:stream";
import { bindScope } from "@millwright/telemetry";
import { stream, type Reply, type RequestInfo } from "../../rest/index.ts";

/** Milliseconds after which a client that reads nothing of the pending text is disconnected. */
const STALL_MS = 30_000;

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
    stuckMs = STALL_MS,
  }: { headers?: Readonly<Record<string, string>>; stuckMs?: number | undefined } = {},
): Reply =>
  stream(contentType, Readable.from(bindScope(withStallTimeout(texts, stuckMs, () => raw.res.destroy()))), headers);

async function* withStallTimeout(
  texts: AsyncIterable<string>,
  stuckMs: number,
  onStall: () => void,
): AsyncGenerator<string> {
  for await (const text of texts) {
    const timer = setTimeout(onStall, stuckMs);
    try {
      yield text;
    } finally {
      clearTimeout(timer);
    }
  }
}
