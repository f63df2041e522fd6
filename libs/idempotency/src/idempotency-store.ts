import { BackgroundLoop, type Sql } from "@millwright/database";
import type { Vault } from "@millwright/vault";
import { idempotencyMismatch, type IdempotentRequest } from "./idempotent-request.ts";

const HOUR_MS = 3_600_000;

type PrunerLog = { warn(fields: { component: string; error: unknown }, message: string): void };

export type IdempotencyStoreOptions = {
  /** Encrypts responses, for responses with a secret that is shown once. The column `response` must be text. */
  readonly vault?: Vault;
  /**
   * How long a response is stored. Default: 24 hours, in which a client may retry, plus a margin of 10 minutes, so that
   * no service that this one calls stores its responses for longer.
   */
  readonly retentionMs?: number;
};

/**
 * Responses to requests with an idempotency key, in the table `idempotency_keys` of the service: `principal_uid`,
 * `operation`, `key`, `body_hash`, `response` (jsonb or text), `created_at`. The time `undefined` is the database's.
 */
export class IdempotencyStore {
  readonly #vault: Vault | undefined;
  readonly #retention: string;

  constructor({ vault, retentionMs = 24 * HOUR_MS + HOUR_MS / 6 }: IdempotencyStoreOptions = {}) {
    this.#vault = vault;
    this.#retention = `interval '${retentionMs} milliseconds'`;
  }

  /**
   * Runs `act` in the transaction `tx` and stores its result; returns the stored result, as parsed JSON, to a repeated
   * request. A concurrent repetition waits for the first transaction. If `act` throws, the transaction must be rolled
   * back. Without a request, always runs `act`. Errors: idempotency_mismatch (conflict) if the key was used with another
   * body.
   */
  async once<T>(
    tx: Sql,
    request: IdempotentRequest | undefined,
    now: Date | undefined,
    act: () => Promise<T>,
  ): Promise<T> {
    if (!request) return act();
    if (!(await this.#claim(tx, request, now, "null"))) return (await this.find<T>(tx, request, now)) as T;
    const response = await act();
    await tx.query(
      "UPDATE idempotency_keys SET response = $4 WHERE principal_uid = $1 AND operation = $2 AND key = $3",
      [...namesOf(request), this.#seal(request, response)],
    );
    return response;
  }

  /**
   * Stores a response unless one is stored, and returns the stored one. For operations of other services, which cannot
   * share a transaction with the row: concurrent repetitions all return the response that was stored first. Errors:
   * idempotency_mismatch (conflict).
   */
  async storeFirst<T>(sql: Sql, request: IdempotentRequest, now: Date | undefined, response: T): Promise<T> {
    if (await this.#claim(sql, request, now, this.#seal(request, response))) return response;
    return (await this.find<T>(sql, request, now)) ?? response;
  }

  /**
   * Returns the stored response to a request; if there is none, calls `act` and stores its response (`storeFirst`).
   * Without a request, always calls `act`. Errors: idempotency_mismatch (conflict).
   */
  async respondFirst<T>(
    sql: Sql,
    request: IdempotentRequest | undefined,
    now: Date | undefined,
    act: () => Promise<T>,
  ): Promise<T> {
    if (!request) return act();
    return (await this.find<T>(sql, request, now)) ?? this.storeFirst(sql, request, now, await act());
  }

  /**
   * Returns the stored response to a request, or undefined. Resources in it may have been deleted since. Errors:
   * idempotency_mismatch (conflict).
   */
  async find<T>(sql: Sql, request: IdempotentRequest, now: Date | undefined): Promise<T | undefined> {
    const {
      rows: [stored],
    } = await sql.query<{ response: string; isSameBody: boolean }>(
      `SELECT response::text, body_hash = $4 AS "isSameBody"
         FROM idempotency_keys
        WHERE principal_uid = $1 AND operation = $2 AND key = $3
          AND created_at > coalesce($5::timestamptz, now()) - ${this.#retention}`,
      [...namesOf(request), request.bodyHash, timeOf(now)],
    );
    if (!stored) return undefined;
    if (!stored.isSameBody) throw idempotencyMismatch();
    return JSON.parse(this.#vault?.open(stored.response, contextOf(request)) ?? stored.response) as T;
  }

  /** Returns a loop that deletes expired responses every hour. */
  pruner({ sql, clock, log }: { sql: Sql; clock: { now(): Date }; log: PrunerLog }): BackgroundLoop {
    return new BackgroundLoop({
      everyMs: HOUR_MS,
      step: () => this.prune(sql, clock.now()).then(() => "idle" as const),
      onError: (error) =>
        log.warn({ component: "idempotency pruner", error }, "deleting expired responses failed; retrying"),
    });
  }

  /** Deletes expired responses. */
  async prune(sql: Sql, now?: Date): Promise<void> {
    await sql.query(
      `DELETE FROM idempotency_keys WHERE created_at <= coalesce($1::timestamptz, now()) - ${this.#retention}`,
      [timeOf(now)],
    );
  }

  /** Inserts the row of a request. Returns whether the key is new or its earlier row has expired. */
  async #claim(sql: Sql, request: IdempotentRequest, now: Date | undefined, response: string): Promise<boolean> {
    const { rowCount } = await sql.query(
      `INSERT INTO idempotency_keys AS i (principal_uid, operation, key, body_hash, response, created_at)
       VALUES ($1, $2, $3, $4, $5, coalesce($6::timestamptz, now()))
       ON CONFLICT (principal_uid, operation, key) DO UPDATE
          SET body_hash = excluded.body_hash, response = excluded.response, created_at = excluded.created_at
        WHERE i.created_at <= excluded.created_at - ${this.#retention}
       RETURNING key`,
      [...namesOf(request), request.bodyHash, response, timeOf(now)],
    );
    return rowCount === 1;
  }

  #seal(request: IdempotentRequest, response: unknown): string {
    const text = JSON.stringify(response);
    return this.#vault?.seal(text, contextOf(request)) ?? text;
  }
}

const namesOf = ({ principalUid, operation, key }: IdempotentRequest): string[] => [principalUid, operation, key];

/** The context that binds an encrypted response to its request. */
const contextOf = (request: IdempotentRequest): string => `idempotency:${namesOf(request).join(" ")}`;

const timeOf = (now: Date | undefined): string | null => now?.toISOString() ?? null;
