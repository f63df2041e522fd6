import { setTimeout as pause } from "node:timers/promises";
import { timeoutFactor } from "@millwright/testing";
import type { RawResponse } from "./requests.ts";

const RESUME_MS = 10_000;
const PAUSE_MS = 100;

/**
 * Reads a stream of server-sent events until its `end` event. With `mayBreak` a broken stream is resumed after the last
 * complete event, and the parts are returned as one stream.
 */
export async function readStream(url: string, init: RequestInit, mayBreak: boolean): Promise<RawResponse> {
  const headers = { ...(init.headers as Record<string, string>) };
  let text = "";
  for (let deadline = Date.now() + RESUME_MS * timeoutFactor(); ; await pause(PAUSE_MS)) {
    try {
      const response = await fetch(url, { ...init, headers });
      const seen = await readBlocks(response, mayBreak);
      text += seen;
      if (seen !== "") deadline = Date.now() + RESUME_MS * timeoutFactor();
      const isWhole = response.status !== 200 ? response.status < 500 : text.endsWith("event: end\ndata: {}\n\n");
      if (!mayBreak || isWhole || Date.now() > deadline)
        return { status: response.status, headers: response.headers, text, bytes: Buffer.from(text) };
    } catch (error) {
      if (!mayBreak || Date.now() > deadline) throw error;
    }
    const lastId = [...text.matchAll(/^id: (.+)$/gm)].at(-1)?.[1];
    if (lastId !== undefined) headers["last-event-id"] = lastId;
  }
}

/** Returns the complete blocks of a response. With `mayBreak` the response may break off. */
async function readBlocks(response: Response, mayBreak: boolean): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const bytes of response.body ?? []) text += decoder.decode(bytes as Uint8Array, { stream: true });
  } catch (error) {
    if (!mayBreak || !text.includes("\n\n")) throw error;
    return text.slice(0, text.lastIndexOf("\n\n") + 2);
  }
  return text;
}

/**
 * Reads events as a browser does: resumes a stream that breaks off or is temporarily rejected after its last complete
 * event. Returns the events, without `open` and `end`, up to the first one for which `isLast` returns true, or up to
 * the end of the stream. Throws if no event arrives for `FOLLOW_MS`.
 */
export async function followEvents(
  url: string,
  headers: Readonly<Record<string, string>>,
  isLast: (event: any) => boolean = () => false,
): Promise<any[]> {
  const events: any[] = [];
  let lastId: string | undefined;
  for (let deadline = Date.now() + FOLLOW_MS * timeoutFactor(); ; await pause(PAUSE_MS)) {
    if (Date.now() > deadline) throw new Error(`No event after ${lastId} came for long: ${url}`);
    const stop = new AbortController();
    try {
      const response = await fetch(url, {
        headers: {
          ...headers,
          accept: "text/event-stream",
          ...(lastId === undefined ? {} : { "last-event-id": lastId }),
        },
        signal: stop.signal,
      });
      for await (const { id, event, data } of blocksOf(response)) {
        deadline = Date.now() + FOLLOW_MS * timeoutFactor();
        lastId = id ?? lastId;
        if (event === "end") return events;
        if (event !== "open") events.push(data);
        if (isLast(data)) return events;
      }
    } catch {
      continue; // Connection lost: resume after `lastId`.
    } finally {
      stop.abort();
    }
  }
}

/** Longer than the restart of a killed gateway takes on a busy machine. */
const FOLLOW_MS = 60_000;

async function* blocksOf(response: Response): AsyncGenerator<{ id?: string; event?: string; data: any }> {
  if (response.status !== 200) throw new Error(String(response.status));
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes as Uint8Array, { stream: true });
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const fields = Object.fromEntries(
        text
          .slice(0, end)
          .split("\n")
          .map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]),
      );
      text = text.slice(end + 2);
      if (fields["data"] !== undefined)
        yield {
          id: fields["id"],
          event: fields["event"],
          data: JSON.parse(fields["data"]),
        };
    }
  }
}
