import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

const RESPONSE_TIMEOUT_MS = 8_000;
/** Requests that get a retryable 409 are retried this many times longer than requests without a response. */
const CONFLICT_TIMEOUT_FACTOR = 10;
const PAUSE_FIRST_MS = 50;
const PAUSE_MAX_MS = 1_000;

export type ApiResponse = { readonly status: number; readonly body: any };

/** Thrown when a request had no final response before its deadline. */
export class NoResponseError extends Error {
  override readonly name = "GaveUp";
}

/** A client of the public API that retries unanswered and retryable requests with the same Idempotency-Key. */
export class RetryingClient {
  readonly #url: string;
  readonly #key: string;
  readonly #stallTimeoutMs: number;

  constructor(url: string, key: string, stallTimeoutMs: number) {
    this.#url = url;
    this.#key = key;
    this.#stallTimeoutMs = stallTimeoutMs;
  }

  /** Returns the first response that is not retryable. `path` is below `/api/v1`. Throws NoResponseError if there is none in time. */
  async send(method: string, path: string, body?: object): Promise<ApiResponse> {
    const idempotencyKey = randomUUID();
    let last = "no response";
    const startedAt = Date.now();
    for (let attempt = 0, deadline = startedAt + this.#stallTimeoutMs; Date.now() < deadline; attempt++) {
      try {
        const { response, isRetryable } = await this.#once(method, path, body, idempotencyKey);
        if (!isRetryable) return response;
        last = JSON.stringify(response.body);
        if (response.status === 409) deadline = startedAt + this.#stallTimeoutMs * CONFLICT_TIMEOUT_FACTOR;
      } catch (error) {
        last =
          error instanceof Error
            ? `${error.message} ${error.cause instanceof Error ? error.cause.message : ""}`
            : "an error";
      }
      await pause(Math.min(PAUSE_FIRST_MS * 2 ** attempt, PAUSE_MAX_MS));
    }
    throw new NoResponseError(`${method} ${path} got no final response: ${last}`);
  }

  async #once(
    method: string,
    path: string,
    body: object | undefined,
    idempotencyKey: string,
  ): Promise<{ response: ApiResponse; isRetryable: boolean }> {
    const fetched = await fetch(`${this.#url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#key}`,
        "content-type": "application/json",
        ...(method === "GET" ? {} : { "idempotency-key": idempotencyKey }),
      },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(RESPONSE_TIMEOUT_MS),
    });
    const response = { status: fetched.status, body: JSON.parse((await fetched.text()) || "null") };
    return { response, isRetryable: fetched.headers.get("x-should-retry") === "true" };
  }

  /**
   * Returns the body of a successful response. Throws NoResponseError, or an error with the response if it was not successful.
   */
  async request(method: string, path: string, body?: object): Promise<any> {
    const response = await this.send(method, path, body);
    if (response.status >= 300)
      throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(response.body)}`);
    return response.body;
  }
}
