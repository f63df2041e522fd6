import { createParser, type EventSourceMessage } from "eventsource-parser";
import { requestHeaders } from "./client.ts";
import { ApiError, errorOf } from "./problem.ts";

export type StreamState = "connecting" | "open" | "ended";

export type StreamOptions = {
  /** Path with query, below this origin. */
  readonly path: string;
  /** Id of the event after which the stream starts. */
  readonly after?: number;
  /** Receives each event once, in order of the stream. */
  readonly onEvent: (event: EventSourceMessage) => void;
  readonly onState?: (state: StreamState) => void;
  /** Called for a failure that a reconnect cannot fix, such as 401 and 404. The stream has ended. */
  readonly onError?: (error: ApiError) => void;
};

const RETRY_MS = [500, 1_000, 2_000, 5_000, 10_000];
/** The server sends a keep-alive more often than this; a longer silence means that the connection is lost. */
const SILENCE_MS = 60_000;

/**
 * Reads server-sent events until `event: end`, and reconnects after the last received id, so that no event is lost or
 * repeated. Returns a function that closes the stream. `EventSource` is not used because it cannot send headers.
 */
export function openEventStream({ path, after, onEvent, onState, onError }: StreamOptions): () => void {
  const closed = new AbortController();
  let lastId = after;
  let failures = 0;

  const connect = async (): Promise<"ended" | "lost"> => {
    const attempt = new AbortController();
    const abort = (): void => attempt.abort();
    closed.signal.addEventListener("abort", abort);
    addEventListener("offline", abort);
    let silence = setTimeout(abort, SILENCE_MS);
    let hasEnded = false;
    const parser = createParser({
      onEvent(event) {
        if (event.event === "end") hasEnded = true;
        const id = event.id === undefined ? undefined : Number(event.id);
        if (id !== undefined && lastId !== undefined && id <= lastId && event.event !== "open") return;
        if (id !== undefined) lastId = id;
        onEvent(event);
      },
    });
    try {
      const response = await fetch(path, {
        headers: {
          ...requestHeaders(),
          accept: "text/event-stream",
          ...(lastId === undefined ? {} : { "last-event-id": String(lastId) }),
        },
        signal: attempt.signal,
      });
      if (!response.ok || !response.body) throw await errorOf(`GET ${path}`, response);
      onState?.("open");
      for await (const chunk of textOf(response.body)) {
        failures = 0;
        clearTimeout(silence);
        silence = setTimeout(abort, SILENCE_MS);
        parser.feed(chunk);
        if (hasEnded) return "ended";
      }
      return "lost";
    } finally {
      clearTimeout(silence);
      closed.signal.removeEventListener("abort", abort);
      removeEventListener("offline", abort);
      attempt.abort();
    }
  };

  const run = async (): Promise<void> => {
    while (!closed.signal.aborted) {
      onState?.("connecting");
      try {
        if ((await connect()) === "ended") return onState?.("ended");
      } catch (error) {
        const isFinal = error instanceof ApiError && error.status >= 400 && error.status < 500 && error.status !== 429;
        if (isFinal) {
          onState?.("ended");
          return onError?.(error);
        }
      }
      if (!closed.signal.aborted) await delay(RETRY_MS[Math.min(failures++, RETRY_MS.length - 1)]!, closed.signal);
    }
  };
  void run();
  return () => closed.abort();
}

async function* textOf(body: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}

/** Waits, or less if the browser reports that it is online again. */
const delay = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      removeEventListener("online", finish);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    addEventListener("online", finish);
    signal.addEventListener("abort", finish);
  });
