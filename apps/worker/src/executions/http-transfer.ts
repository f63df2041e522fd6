import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { DomainError } from "@millwright/errors";

/** Signed URLs and the public REST API are plain HTTP: a connection that fails, or a gateway that is away, may pass. */
const PASSING_STATUS = new Set([408, 425, 429, 502, 503, 504]);

/** Sends one request. Errors: `platform_unavailable` (may pass) when there is no answer; the reason of `signal`. */
export async function send(url: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, { ...init, signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw unavailable(cause);
  }
}

/** Sends one request and reads its whole answer within `timeoutMs`. Errors: as `send`. */
export async function exchange(
  url: string,
  init: RequestInit,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<{ response: Response; text: string }> {
  try {
    const response = await fetch(url, { ...init, signal: AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]) });
    return { response, text: await response.text() };
  } catch (cause) {
    signal.throwIfAborted();
    throw unavailable(cause);
  }
}

/** Where content goes, and the headers that belong to it. */
export type Upload = { readonly uploadUrl: string; readonly uploadHeaders: Readonly<Record<string, string>> };

/** The slowest that an upload may be: a store that takes nothing any more says so by nothing else. */
const UPLOAD_BYTES_PER_MS_MIN = 128;

/** PUTs content to a signed URL, within `timeoutMs` and what so many bytes may take. Errors: `transfer_refused`, `platform_unavailable`. */
export async function upload(
  { uploadUrl, uploadHeaders }: Upload,
  body: Blob,
  signal: AbortSignal,
  timeoutMs: number,
): Promise<void> {
  const { response } = await exchange(
    uploadUrl,
    { method: "PUT", body, headers: { ...uploadHeaders } },
    signal,
    timeoutMs + Math.ceil(body.size / UPLOAD_BYTES_PER_MS_MIN),
  );
  assertTransferred(response);
}

/** Writes what a signed URL serves into a file. Errors: `transfer_refused`, `platform_unavailable`, those of the file system. */
export async function download(url: string, file: string, signal: AbortSignal): Promise<void> {
  const answer = await send(url, {}, signal);
  if (!answer.ok || !answer.body) await answer.body?.cancel();
  assertTransferred(answer);
  if (!answer.body) return;
  const source = Readable.fromWeb(answer.body);
  let isCut = false;
  source.on("error", () => (isCut = true));
  try {
    await pipeline(source, createWriteStream(file, { mode: 0o600 }), { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw isCut ? unavailable(error) : error;
  }
}

/** Whether an answer of the public API is worth asking for again: the platform itself says so, or something before it is away. */
export function isPassing(status: number, body: unknown): boolean {
  if (PASSING_STATUS.has(status)) return true;
  return (
    status >= 500 && typeof body === "object" && body !== null && (body as { retryable?: unknown }).retryable === true
  );
}

function assertTransferred(answer: Response): void {
  if (answer.ok) return;
  if (answer.status >= 500 || PASSING_STATUS.has(answer.status)) throw unavailable(undefined);
  throw new DomainError({
    kind: "internal",
    reason: "transfer_refused",
    message: `A transfer was refused with status ${answer.status}.`,
    retryable: false,
  });
}

export const unavailable = (cause: unknown): DomainError =>
  new DomainError({
    kind: "unavailable",
    reason: "platform_unavailable",
    message: "The platform cannot be reached.",
    cause,
  });
