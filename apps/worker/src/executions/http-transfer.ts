import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { DomainError } from "@millwright/errors";

/** Transient statuses of signed URLs and of the public REST API, which are plain HTTP. */
const TRANSIENT_STATUS = new Set([408, 425, 429, 502, 503, 504]);

/** Sends one request. Throws `platform_unavailable` (transient) if there is no response, or the reason of `signal`. */
export async function send(url: string, init: RequestInit, signal: AbortSignal): Promise<Response> {
  try {
    return await fetch(url, { ...init, signal });
  } catch (cause) {
    signal.throwIfAborted();
    throw unavailable(cause);
  }
}

/** Sends one request and reads its complete response within `timeoutMs`. Throws the same errors as `send`. */
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

/** The URL of an upload and its required headers. */
export type Upload = { readonly uploadUrl: string; readonly uploadHeaders: Readonly<Record<string, string>> };

/** The minimum upload rate. It determines the timeout, because a stalled upload is not detected in any other way. */
const UPLOAD_BYTES_PER_MS_MIN = 128;

/**
 * PUTs content to a signed URL, within `timeoutMs` plus the maximum time for its size. Throws `transfer_refused` or
 * `platform_unavailable`.
 */
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

/** Downloads a signed URL into a file. Throws `transfer_refused`, `platform_unavailable` or file system errors. */
export async function download(url: string, file: string, signal: AbortSignal): Promise<void> {
  const response = await send(url, {}, signal);
  if (!response.ok || !response.body) await response.body?.cancel();
  assertTransferred(response);
  if (!response.body) return;
  const source = Readable.fromWeb(response.body);
  let isCut = false;
  source.on("error", () => (isCut = true));
  try {
    await pipeline(source, createWriteStream(file, { mode: 0o600 }), { signal });
  } catch (error) {
    signal.throwIfAborted();
    throw isCut ? unavailable(error) : error;
  }
}

/**
 * Returns whether a response of the public API is transient: it is marked as retryable, or a gateway in front of the
 * platform is unavailable.
 */
export function isTransient(status: number, body: unknown): boolean {
  if (TRANSIENT_STATUS.has(status)) return true;
  return (
    status >= 500 && typeof body === "object" && body !== null && (body as { retryable?: unknown }).retryable === true
  );
}

function assertTransferred(response: Response): void {
  if (response.ok) return;
  if (response.status >= 500 || TRANSIENT_STATUS.has(response.status)) throw unavailable(undefined);
  throw new DomainError({
    kind: "internal",
    reason: "transfer_refused",
    message: `A transfer was refused with status ${response.status}.`,
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
