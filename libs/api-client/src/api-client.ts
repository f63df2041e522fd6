import { setTimeout as delay } from "node:timers/promises";
import { ApiError, type Problem } from "./api-error.ts";
import { parseEventStream, type ServerEvent } from "./event-stream.ts";

export type ApiClientOptions = { url: string; apiKey: string; teamUid?: string; fetch?: typeof fetch };
export type RequestOptions = {
  query?: Record<string, string | number | boolean | readonly string[] | undefined>;
  body?: unknown;
  idempotencyKey?: string;
  signal?: AbortSignal;
};

/** A small client of the public REST API: JSON in, JSON out, problems as ApiError, resumable event streams. */
export class ApiClient {
  readonly #options: ApiClientOptions;
  readonly #fetch: typeof fetch;

  constructor(options: ApiClientOptions) {
    this.#options = options;
    this.#fetch = options.fetch ?? fetch;
  }

  get<T>(path: string, query?: RequestOptions["query"]): Promise<T> {
    return this.request<T>("GET", path, query ? { query } : {});
  }

  post<T>(path: string, body?: unknown, options: RequestOptions = {}): Promise<T> {
    return this.request<T>("POST", path, { ...options, body });
  }

  /** Sends one request. `path` is relative to `/api/v1`. Throws ApiError for an error response. */
  async request<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    const response = await this.#send(method, path, options);
    if (response.status === 204) return undefined as T;
    return (await response.json()) as T;
  }

  /**
   * Returns the text of a path that does not return JSON, or that redirects to a signed URL, such as an export or a
   * transcript.
   */
  async download(
    path: string,
    { query = {}, accept }: { query?: RequestOptions["query"]; accept?: string } = {},
  ): Promise<string> {
    const response = await this.#send("GET", path, { query }, accept === undefined ? {} : { accept });
    return response.text();
  }

  /**
   * Follows an event stream until the server ends it with `event: end`. Reconnects after the last received event; no
   * event is yielded twice.
   */
  async *events(path: string, signal?: AbortSignal): AsyncGenerator<ServerEvent> {
    let lastId: string | undefined;
    for (let failures = 0; ;) {
      try {
        const response = await this.#send("GET", path, signal ? { signal } : {}, {
          accept: "text/event-stream",
          ...(lastId !== undefined && { "last-event-id": lastId }),
        });
        for await (const event of parseEventStream(response.body as AsyncIterable<Uint8Array>)) {
          failures = 0;
          if (event.event === "end") return;
          if (event.id !== undefined) lastId = event.id;
          yield event;
        }
      } catch (error) {
        if (signal?.aborted) return;
        if (error instanceof ApiError && error.status < 500) throw error;
        if (++failures > 10) throw error;
      }
      await delay(200 * (failures + 1));
    }
  }

  async #send(
    method: string,
    path: string,
    options: RequestOptions,
    extra: Record<string, string> = {},
  ): Promise<Response> {
    const url = new URL(`/api/v1${path}`, this.#options.url);
    for (const [name, value] of Object.entries(options.query ?? {})) {
      for (const item of Array.isArray(value) ? value : [value]) {
        if (item !== undefined) url.searchParams.append(name, String(item));
      }
    }
    const response = await this.#fetch(url, {
      method,
      headers: {
        authorization: `Bearer ${this.#options.apiKey}`,
        ...(options.body !== undefined && { "content-type": "application/json" }),
        ...(options.idempotencyKey !== undefined && { "idempotency-key": options.idempotencyKey }),
        ...(this.#options.teamUid !== undefined && { "x-service-team-uid": this.#options.teamUid }),
        ...extra,
      },
      ...(options.body !== undefined && { body: JSON.stringify(options.body) }),
      ...(options.signal && { signal: options.signal }),
    });
    if (!response.ok) throw new ApiError(await problemOf(response));
    return response;
  }
}

async function problemOf(response: Response): Promise<Problem> {
  const text = await response.text();
  try {
    return { ...(JSON.parse(text) as Problem), status: response.status };
  } catch {
    return { status: response.status, detail: text.slice(0, 200) || `HTTP ${response.status}` };
  }
}
