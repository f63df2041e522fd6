import { setTimeout as pause } from "node:timers/promises";
import { timeoutFactor } from "@millwright/testing";

/** Detects a platform that does not come back; restarts of killed processes take many seconds on a slow machine. */
const RETRY_MS = 60_000;
const PAUSE_FIRST_MS = 50;
const PAUSE_MAX_MS = 1_000;

export type RawResponse = {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
};

/** Thrown if there is no response, or an incomplete one. */
export class NoResponseError extends Error {
  override readonly name = "NoResponseError";
}

/** Sends a request and reads the whole response. Throws NoResponseError if that fails. */
export async function sendRequest(url: string, init: RequestInit): Promise<RawResponse> {
  try {
    const response = await fetch(url, init);
    const bytes = Buffer.from(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, bytes, text: bytes.toString() };
  } catch (cause) {
    throw new NoResponseError(`${init.method ?? "GET"} ${new URL(url).pathname} got no response.`, { cause });
  }
}

/**
 * Retries a request that may be repeated, with pauses, while there is no response or the response reports a temporary
 * failure. An internal error is not temporary.
 */
export async function sendWithRetries(
  send: (attempt: number) => Promise<RawResponse>,
  isTemporary = isTemporaryProblem,
): Promise<RawResponse> {
  const deadline = Date.now() + RETRY_MS * timeoutFactor();
  for (let attempt = 1; ; attempt++) {
    try {
      const response = await send(attempt);
      if (!isTemporary(response) || Date.now() > deadline) return response;
    } catch (error) {
      if (!(error instanceof NoResponseError) || Date.now() > deadline) throw error;
    }
    await pause(Math.min(PAUSE_FIRST_MS * 2 ** attempt, PAUSE_MAX_MS));
  }
}

const isTemporaryProblem = (response: RawResponse): boolean =>
  isUnavailable(response) && response.headers.get("x-should-retry") === "true";

/** Returns whether a process of the platform did not respond, whether or not the request may be repeated. */
export const isUnavailable = ({ status, text }: RawResponse): boolean =>
  status >= 500 && !text.includes('"reason":"internal"');
