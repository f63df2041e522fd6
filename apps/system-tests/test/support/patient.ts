import { setTimeout as pause } from "node:timers/promises";
import { timeoutFactor } from "@millwright/testing";

const RETRY_MS = 10_000;
const PAUSE_FIRST_MS = 50;
const PAUSE_MAX_MS = 1_000;

export type Told = {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  readonly text: string;
};

/** Thrown when there is no response or it is incomplete. */
export class NotAnswered extends Error {
  override readonly name = "NotAnswered";
}

/** Sends a request and reads the whole response. Throws NotAnswered if that fails. */
export async function ask(url: string, init: RequestInit): Promise<Told> {
  try {
    const response = await fetch(url, init);
    const bytes = Buffer.from(await response.arrayBuffer());
    return { status: response.status, headers: response.headers, bytes, text: bytes.toString() };
  } catch (cause) {
    throw new NotAnswered(`${init.method ?? "GET"} ${new URL(url).pathname} was not answered.`, { cause });
  }
}

/**
 * Retries a request that may be repeated, with pauses, while there is no response or the response reports a temporary
 * failure. An internal error is not temporary.
 */
export async function patiently(send: (attempt: number) => Promise<Told>, isPassing = isPassingProblem): Promise<Told> {
  const deadline = Date.now() + RETRY_MS * timeoutFactor();
  for (let attempt = 1; ; attempt++) {
    try {
      const told = await send(attempt);
      if (!isPassing(told) || Date.now() > deadline) return told;
    } catch (error) {
      if (!(error instanceof NotAnswered) || Date.now() > deadline) throw error;
    }
    await pause(Math.min(PAUSE_FIRST_MS * 2 ** attempt, PAUSE_MAX_MS));
  }
}

const isPassingProblem = ({ status, headers, text }: Told): boolean =>
  status >= 500 && headers.get("x-should-retry") === "true" && !text.includes('"reason":"internal"');
