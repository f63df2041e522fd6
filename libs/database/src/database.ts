import { createHash } from "node:crypto";
import { Pool, types } from "pg";
import type { ClientBase, PoolClient, QueryConfig, QueryResult } from "pg";
import { travelTogether } from "./pipeline.ts";
import { SharedConnections } from "./shared-connections.ts";
import { checkCount, safeNumber } from "./sql.ts";
import type { Sql, SqlResult } from "./sql.ts";
import { CONNECTION_WAIT_MS, retryConflicts } from "./transactions.ts";

export type DatabaseOptions = {
  /** Most connections at once. Default 6. */
  max?: number;
  /** Shown in `pg_stat_activity`. */
  applicationName?: string;
  /** Further connections, for `lookups`. Default 1. */
  shared?: number;
  /** Further connections at most, for `searches`; opened when they are needed. Default 3. */
  searching?: number;
};

/** Hears what was announced by a transaction after it has committed. Must not throw. */
export type CommitListener = (news: ReadonlySet<string>) => void;

/** Texts whose statement is kept prepared per connection; beyond this many, texts are sent unprepared. */
const PREPARED_TEXTS_MAX = 500;

/** Rows are mostly in memory, and many lists are asked for at once: neither compiling nor parallel workers help. */
const SEARCHING =
  "SET statement_timeout = '2s'; SET plan_cache_mode = force_custom_plan; SET jit = off; SET random_page_cost = 1.1; SET max_parallel_workers_per_gather = 0";

/** One service's PostgreSQL database: a pool, autocommitted statements and transactions. */
export class Database {
  readonly pool: Pool;
  /** Every statement commits by itself. */
  readonly sql: Sql;
  /**
   * Short reads by key: they share connections, never wait for a free one, and are planned once for all values. Not for
   * lists, searches, writes, or anything that waits for a lock.
   */
  readonly lookups: Sql;
  /**
   * Lists by whatever is asked for: on connections of their own, planned for their values, and cancelled after two seconds (`isCancelled`), so that
   * they keep nobody else waiting.
   */
  readonly searches: Sql;
  readonly #searching: Pool;
  readonly #shared: SharedConnections;
  readonly #statementNames = new Map<string, string | undefined>();
  readonly #listeners = new Set<CommitListener>();

  private constructor(pool: Pool, shared: SharedConnections, searching: Pool) {
    this.pool = pool;
    this.#shared = shared;
    this.sql = {
      query: (text, params) => retryConflicts(() => this.#run((query) => pool.query(query), text, params)),
      announce: (news) => this.#tell(new Set([news])),
    };
    this.#searching = searching;
    this.searches = { query: (text, params) => this.#run((query) => searching.query(query), text, params) };
    this.lookups = { query: (text, params) => this.#run((query) => shared.query(query), text, params) };
  }

  /** Opens a pool; connects with the first statement, so a database that is still starting is no error here. */
  static open(url: string, options: DatabaseOptions = {}): Database {
    const connection = {
      connectionString: url,
      application_name: options.applicationName,
      connectionTimeoutMillis: CONNECTION_WAIT_MS,
      keepAlive: true,
      types: { getTypeParser },
    };
    // Statements are sent while the answers of earlier ones are on their way.
    const pool = new Pool({ ...connection, max: options.max ?? 6, pipeline: true });
    // A broken connection fails its statement; without these listeners it would end the process as well.
    pool.on("error", ignore);
    pool.on("connect", (client) => client.on("error", ignore));
    const searching = new Pool({ ...connection, max: options.searching ?? 3, pipeline: true });
    searching.on("error", ignore);
    searching.on("connect", (client) => {
      client.on("error", ignore);
      client.query(SEARCHING).catch(ignore); // before the statement that it was opened for
    });
    return new Database(
      pool,
      new SharedConnections(connection, options.shared ?? 1, (query) => pool.query(query)),
      searching,
    );
  }

  /**
   * Runs `f` in one transaction at READ COMMITTED: commits when it returns, rolls back and rethrows when it throws.
   * When PostgreSQL ends it in favour of another one (a deadlock), `f` runs again: its only effects are the transaction's.
   * Keep remote calls out of it. Statements whose answers do not depend on each other need not wait for each other.
   */
  transaction<T>(f: (tx: Sql) => Promise<T>): Promise<T> {
    return retryConflicts(() => this.#transaction(f));
  }

  async #transaction<T>(f: (tx: Sql) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    const news = new Set<string>();
    const sent: Promise<unknown>[] = [];
    const send = (answer: Promise<unknown>): void => (answer.catch(ignore), void sent.push(answer));
    let firstFailure: unknown;
    const execute = (query: QueryConfig): Promise<QueryResult> =>
      ask(client, query).catch((error: unknown) => {
        firstFailure ??= error;
        throw error;
      });
    const run = <R>(text: string, params?: readonly unknown[]): Promise<SqlResult<R>> =>
      this.#run(execute, text, params);
    let result: T;
    try {
      send(execute({ text: "BEGIN" }));
      result = await f({
        query: run,
        send: (text, params, rowsExpected) =>
          send(run(text, params).then((answer) => checkCount(answer, rowsExpected))),
        announce: (what) => void news.add(what),
      });
      send(commit(client));
      for (const answer of sent) await answer; // in this order: the first failure is the cause of the others
    } catch (error) {
      client.release(!(await rollBack(client)));
      throw isAborted(error) ? firstFailure : error; // statements travel together, so f may see a later failure first
    }
    client.release();
    if (news.size > 0) this.#tell(news);
    return result;
  }

  /** Calls `listener` after each commit that announced something. Returns how to stop it. */
  onCommit(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Waits for running statements and closes every connection. */
  async close(): Promise<void> {
    await Promise.all([this.#shared.close(), this.#searching.ended || this.#searching.end()]);
    if (!this.pool.ended) await this.pool.end();
  }

  #tell(news: ReadonlySet<string>): void {
    for (const listener of this.#listeners) listener(news);
  }

  async #run<R>(
    on: (query: QueryConfig) => Promise<QueryResult>,
    text: string,
    values?: readonly unknown[],
  ): Promise<SqlResult<R>> {
    const name = this.#statementName(text);
    const { rows, rowCount } = await on({
      text,
      ...(name && { name }),
      ...(values && { values: values as unknown[] }),
    });
    return { rows: rows as R[], rowCount: rowCount ?? 0 };
  }

  /** The second use of a text prepares it. Several statements in one text cannot be prepared. */
  #statementName(text: string): string | undefined {
    if (!this.#statementNames.has(text)) {
      if (this.#statementNames.size < PREPARED_TEXTS_MAX && !text.includes(";"))
        this.#statementNames.set(text, undefined);
      return undefined;
    }
    const known = this.#statementNames.get(text);
    if (known) return known;
    const name = `s_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
    this.#statementNames.set(text, name);
    return name;
  }
}

function ask(client: ClientBase, query: QueryConfig): Promise<QueryResult> {
  travelTogether(client);
  return client.query(query);
}

/** PostgreSQL answers COMMIT with ROLLBACK when a statement failed and its error was swallowed. */
async function commit(client: PoolClient): Promise<void> {
  const { command } = await ask(client, { text: "COMMIT" });
  if (command !== "COMMIT")
    throw new Error("The transaction was rolled back: a failed statement was not reported by its code.");
}

/** Whether the connection is fit for further use. */
async function rollBack(client: PoolClient): Promise<boolean> {
  return client.query("ROLLBACK").then(
    () => true,
    () => false,
  );
}

/** A statement was refused because one before it had failed. */
const isAborted = (error: unknown): boolean => (error as { code?: unknown } | undefined)?.code === "25P02";

const INT8: number = types.builtins.INT8;
const DATE: number = types.builtins.DATE;

const ignore = (): void => {};
const asText = (value: string): string => value;

function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === INT8) return safeNumber;
  if (oid === DATE) return asText; // a calendar day has no time zone
  return types.getTypeParser(oid, format);
}
