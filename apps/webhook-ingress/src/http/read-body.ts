import type { IncomingMessage, ServerResponse } from "node:http";
import type { ReadBody } from "../usecases/receive-delivery.ts";
import type { Places } from "./places.ts";

/** What is larger, or does not say how large it is, waits for a place among the large ones. */
const LARGE_BYTES = 1024 * 1024;

/** Of a body that is refused, at most so much more is read and discarded after the answer, so that its sender receives it. */
const DRAINED_BYTES_MAX = 2 * 1024 * 1024;
export const DRAIN_MS = 2_000;

/**
 * The raw bytes of a request, at most `bytesMax`. A body that declares more is not read; one that turns out larger is read
 * no further. One that does not end in `timeoutMs`, or whose sender goes away, is lost.
 */
export function readBody(req: IncomingMessage, bytesMax: number, timeoutMs: number): Promise<ReadBody> {
  const declared = Number(req.headers["content-length"] ?? 0);
  if (declared > bytesMax) return Promise.resolve({ tooLargeBytes: declared });
  if (req.destroyed) return Promise.resolve({ isLost: true }); // its sender has gone: no event will say so any more
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const end = (read: ReadBody): void => {
      clearTimeout(timer);
      req.off("data", take).off("end", finish).off("close", lose).off("error", lose);
      req.pause();
      resolve(read);
    };
    const take = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > bytesMax) end({ tooLargeBytes: size });
      else chunks.push(chunk);
    };
    const finish = (): void => end({ bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) });
    const lose = (): void => end({ isLost: true });
    const timer = setTimeout(lose, timeoutMs);
    req.on("data", take).on("end", finish).on("close", lose).on("error", lose);
  });
}

/**
 * As `readBody`, for bodies that may be large and whose senders are not known yet: only so many large ones are held at once, each
 * until it was answered. One that gets no place in time is lost.
 */
export async function readLargeBody(
  req: IncomingMessage,
  res: ServerResponse,
  places: Places,
  bytesMax: number,
  timeoutMs: number,
): Promise<ReadBody> {
  const declared = Number(req.headers["content-length"]);
  if (declared <= LARGE_BYTES || declared > bytesMax) return readBody(req, bytesMax, timeoutMs);
  if (!(await places.take(timeoutMs))) return { isLost: true };
  if (res.closed) {
    places.give();
    return { isLost: true };
  }
  res.once("close", () => places.give());
  return readBody(req, bytesMax, timeoutMs);
}

/** Reads and discards the rest of a body, within the limits above. Closing the connection cuts off whatever is left then. */
export function drain(req: IncomingMessage, drainMs: number = DRAIN_MS): Promise<void> {
  if (req.complete || req.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    let left = DRAINED_BYTES_MAX;
    const end = (): void => {
      clearTimeout(timer);
      req.off("data", take).off("end", end).off("close", end).off("error", end);
      req.pause();
      resolve();
    };
    const take = (chunk: Buffer): void => {
      left -= chunk.length;
      if (left <= 0) end();
    };
    const timer = setTimeout(end, drainMs);
    req.on("data", take).on("end", end).on("close", end).on("error", end);
    req.resume();
  });
}
