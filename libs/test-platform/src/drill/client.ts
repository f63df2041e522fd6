import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

const ANSWER_MS = 8_000;
/** A 409 "not yet" response may be repeated this many times longer than no response. */
const NOT_YET_SHARE = 10;
const PAUSE_FIRST_MS = 50;
const PAUSE_MAX_MS = 1_000;

export type Said = { readonly status: number; readonly body: any };

/** Thrown when a request had no final response before its deadline. */
export class GaveUp extends Error {
  override readonly name = "GaveUp";
}

/** A client of the public API that retries unanswered and retryable requests with the same Idempotency-Key. */
export class PatientClient {
  readonly #url: string;
  readonly #key: string;
  readonly #stallTimeoutMs: number;

  constructor(url: string, key: string, stallTimeoutMs: number) {
    this.#url = url;
    this.#key = key;
    this.#stallTimeoutMs = stallTimeoutMs;
  }

  /** Returns the first response that is not retryable. `path` is below `/api/v1`. Errors: GaveUp. */
  async ask(method: string, path: string, body?: object): Promise<Said> {
    const idempotencyKey = randomUUID();
    let last = "nothing";
    const began = Date.now();
    for (let attempt = 0, deadline = began + this.#stallTimeoutMs; Date.now() < deadline; attempt++) {
      try {
        const { said, mayPass } = await this.#once(method, path, body, idempotencyKey);
        if (!mayPass) return said;
        last = JSON.stringify(said.body);
        if (said.status === 409) deadline = began + this.#stallTimeoutMs * NOT_YET_SHARE;
      } catch (error) {
        last =
          error instanceof Error
            ? `${error.message} ${error.cause instanceof Error ? error.cause.message : ""}`
            : "an error";
      }
      await pause(Math.min(PAUSE_FIRST_MS * 2 ** attempt, PAUSE_MAX_MS));
    }
    throw new GaveUp(`${method} ${path} was not answered: ${last}`);
  }

  async #once(
    method: string,
    path: string,
    body: object | undefined,
    idempotencyKey: string,
  ): Promise<{ said: Said; mayPass: boolean }> {
    const response = await fetch(`${this.#url}/api/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.#key}`,
        "content-type": "application/json",
        ...(method === "GET" ? {} : { "idempotency-key": idempotencyKey }),
      },
      body: body && JSON.stringify(body),
      signal: AbortSignal.timeout(ANSWER_MS),
    });
    const said = { status: response.status, body: JSON.parse((await response.text()) || "null") };
    return { said, mayPass: response.headers.get("x-should-retry") === "true" };
  }

  /**
   * Returns the body of a successful response. Throws GaveUp, or an error with the response if it was not successful.
   */
  async must(method: string, path: string, body?: object): Promise<any> {
    const said = await this.ask(method, path, body);
    if (said.status >= 300) throw new Error(`${method} ${path}: ${said.status} ${JSON.stringify(said.body)}`);
    return said.body;
  }
}
