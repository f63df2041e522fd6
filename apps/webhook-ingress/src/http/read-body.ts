import type { IncomingMessage, ServerResponse } from "node:http";
import type { ReadBody } from "../usecases/receive-delivery.ts";
import type { Semaphore } from "./semaphore.ts";

/** Larger bodies, and those without a declared length, require a permit. */
const LARGE_BYTES = 1024 * 1024;

/**
 * At most this much of a refused body is read and discarded after the response, so that the sender receives the
 * response.
 */
const DRAINED_BYTES_MAX = 2 * 1024 * 1024;
export const DRAIN_MS = 2_000;

/**
 * Reads the raw bytes of a request, at most `bytesMax`. A body that declares more is not read; one that turns out
 * larger is read no further. Returns `isLost` if the body does not end within `timeoutMs` or the sender disconnects.
 */
export function readBody(req: IncomingMessage, bytesMax: number, timeoutMs: number): Promise<ReadBody> {
  const declared = Number(req.headers["content-length"] ?? 0);
  if (declared > bytesMax) return Promise.resolve({ tooLargeBytes: declared });
  if (req.destroyed) return Promise.resolve({ isLost: true }); // no event follows any more
  return new Promise((resolve) => {
    const chunks: Buffer[] = [];
    let size = 0;
    const end = (read: ReadBody): void => {
      clearTimeout(timer);
      req.off("data", append).off("end", finish).off("close", lose).off("error", lose);
      req.pause();
      resolve(read);
    };
    const append = (chunk: Buffer): void => {
      size += chunk.length;
      if (size > bytesMax) end({ tooLargeBytes: size });
      else chunks.push(chunk);
    };
    const finish = (): void => end({ bytes: chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks) });
    const lose = (): void => end({ isLost: true });
    const timer = setTimeout(lose, timeoutMs);
    req.on("data", append).on("end", finish).on("close", lose).on("error", lose);
  });
}

/**
 * Reads a body like `readBody`. A large body of an unauthenticated sender requires a permit until its response is
 * finished; without a permit in time it is lost.
 */
export async function readLargeBody(
  req: IncomingMessage,
  res: ServerResponse,
  semaphore: Semaphore,
  bytesMax: number,
  timeoutMs: number,
): Promise<ReadBody> {
  const declared = Number(req.headers["content-length"]);
  if (declared <= LARGE_BYTES || declared > bytesMax) return readBody(req, bytesMax, timeoutMs);
  if (!(await semaphore.acquire(timeoutMs))) return { isLost: true };
  if (res.closed) {
    semaphore.release();
    return { isLost: true };
  }
  res.once("close", () => semaphore.release());
  return readBody(req, bytesMax, timeoutMs);
}

/** Reads and discards the rest of a body within the limits above. Closing the connection cuts off the remainder. */
export function drain(req: IncomingMessage, drainMs: number = DRAIN_MS): Promise<void> {
  if (req.complete || req.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    let remaining = DRAINED_BYTES_MAX;
    const end = (): void => {
      clearTimeout(timer);
      req.off("data", discard).off("end", end).off("close", end).off("error", end);
      req.pause();
      resolve();
    };
    const discard = (chunk: Buffer): void => {
      remaining -= chunk.length;
      if (remaining <= 0) end();
    };
    const timer = setTimeout(end, drainMs);
    req.on("data", discard).on("end", end).on("close", end).on("error", end);
    req.resume();
  });
}
