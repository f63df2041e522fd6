import { createHash } from "node:crypto";
import { Pool, types } from "pg";
import type { ClientBase, PoolClient, PoolConfig, QueryConfig, QueryResult } from "pg";
import { corkPerTurn } from "./pipeline.ts";
import { SharedConnections } from "./shared-connections.ts";
import { checkCount, safeNumber } from "./sql.ts";
import type { Sql, SqlResult } from "./sql.ts";
import { CONNECTION_WAIT_MS, retryConflicts } from "./transactions.ts";

export type DatabaseOptions = {
  /** Maximum number of connections. Default 6. */
  max?: number;
  /** Shown in `pg_stat_activity`. */
  applicationName?: string;
  /** Additional connections for `lookups`. Default 1. */
  shared?: number;
  /** Maximum number of additional connections for `searches`, opened on demand. Default 3. */
  searching?: number;
};

/** Called after commit with the topics that the transaction announced. Must not throw. */
export type CommitListener = (topics: ReadonlySet<string>) => void;

/** Maximum number of prepared statements per connection; further statements are sent unprepared. */
const PREPARED_TEXTS_MAX = 500;

/**
 * Statements of the pool and look-ups read few rows by key. A plan that PostgreSQL caches while a table is almost empty
 * must not read the whole table after it has grown, so indexes are used from the first row. Without an index, versions
 * up to 17 then add a cost at which they would compile the plan.
 */
const BY_KEY = "SET enable_seqscan = off; SET jit = off";

/** Reads by key have one good plan for all keys. */
const LOOKING_UP = `${BY_KEY}; SET plan_cache_mode = force_generic_plan`;

/**
 * Most rows are in memory, and many lists are read concurrently: neither JIT compilation nor parallel workers help.
 */
const SEARCHING =
  "SET statement_timeout = '2s'; SET plan_cache_mode = force_custom_plan; SET jit = off; SET random_page_cost = 1.1; SET max_parallel_workers_per_gather = 0";

/** One service's PostgreSQL database: a pool, autocommitted statements, and transactions. */
export class Database {
  readonly pool: Pool;
  /** Every statement commits by itself. For few rows by key: tables are not read as a whole where an index fits. */
  readonly sql: Sql;
  /**
   * Short reads by key: they share connections, never wait for a free one, and use one generic plan. Not for lists,
   * searches, writes, or anything that waits for a lock.
   */
  readonly lookups: Sql;
  /**
   * Lists by arbitrary filters: on separate connections, planned for their values, and cancelled after two seconds
   * (`isCancelled`), so that they do not block other statements.
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
      announce: (topic) => this.#notifyListeners(new Set([topic])),
    };
    this.#searching = searching;
    this.searches = { query: (text, params) => this.#run((query) => searching.query(query), text, params) };
    this.lookups = { query: (text, params) => this.#run((query) => shared.query(query), text, params) };
  }

  /** Opens a pool; connects with the first statement, so a database that is still starting is not an error here. */
  static open(url: string, options: DatabaseOptions = {}): Database {
    const connection = {
      connectionString: url,
      application_name: options.applicationName,
      connectionTimeoutMillis: CONNECTION_WAIT_MS,
      keepAlive: true,
      types: { getTypeParser },
    };
    const pool = openPool({ ...connection, max: options.max ?? 6 }, BY_KEY);
    const searching = openPool({ ...connection, max: options.searching ?? 3 }, SEARCHING);
    return new Database(
      pool,
      new SharedConnections(connection, LOOKING_UP, options.shared ?? 1, (query) => pool.query(query)),
      searching,
    );
  }

  /**
   * Runs `f` in one transaction at READ COMMITTED: commits when it returns, rolls back and rethrows when it throws. If
   * PostgreSQL aborts it because of another transaction (a deadlock), `f` runs again, so its only effects must be the
   * transaction's. Do not make remote calls in it. Independent statements can be sent without awaiting each other.
   */
  transaction<T>(f: (tx: Sql) => Promise<T>): Promise<T> {
    return retryConflicts(() => this.#transaction(f));
  }

  async #transaction<T>(f: (tx: Sql) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    const topics = new Set<string>();
    const sent: Promise<unknown>[] = [];
    const send = (statement: Promise<unknown>): void => (statement.catch(ignore), void sent.push(statement));
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
        send: (text, params, rowsExpected) => send(run(text, params).then((rows) => checkCount(rows, rowsExpected))),
        announce: (topic) => void topics.add(topic),
      });
      send(commit(client));
      for (const statement of sent) await statement; // in this order: the first failure causes the others
    } catch (error) {
      client.release(!(await rollBack(client)));
      throw isAborted(error) ? firstFailure : error; // statements are pipelined, so f may see a later failure first
    }
    client.release();
    if (topics.size > 0) this.#notifyListeners(topics);
    return result;
  }

  /** Calls `listener` after each commit with announced topics. Returns a function that unsubscribes. */
  onCommit(listener: CommitListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Returns whether the database responds. */
  isReachable(): Promise<boolean> {
    return this.sql.query("SELECT 1").then(
      () => true,
      () => false,
    );
  }

  /** Waits for running statements and closes every connection. */
  async close(): Promise<void> {
    await Promise.all([this.#shared.close(), this.#searching.ended || this.#searching.end()]);
    if (!this.pool.ended) await this.pool.end();
  }

  #notifyListeners(topics: ReadonlySet<string>): void {
    for (const listener of this.#listeners) listener(topics);
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

  /** Prepares a text at its second use. Several statements in one text cannot be prepared. */
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

/**
 * Opens a pool whose connections begin with the statements `settings`. These are not start-up options, because a
 * connection pooler may reject those.
 */
function openPool(config: PoolConfig, settings: string): Pool {
  // Statements are pipelined: sent before earlier results have arrived.
  const pool = new Pool({ ...config, pipeline: true });
  // A broken connection fails its statement; without these listeners it would also end the process.
  pool.on("error", ignore);
  pool.on("connect", (client) => {
    client.on("error", ignore);
    client.query(settings).catch(ignore); // runs before the statement for which the connection was opened
  });
  return pool;
}

function ask(client: ClientBase, query: QueryConfig): Promise<QueryResult> {
  corkPerTurn(client);
  return client.query(query);
}

/** PostgreSQL responds to COMMIT with ROLLBACK if a statement failed and its error was swallowed. */
async function commit(client: PoolClient): Promise<void> {
  const { command } = await ask(client, { text: "COMMIT" });
  if (command !== "COMMIT")
    throw new Error("The transaction was rolled back: a failed statement was not reported by its code.");
}

/** Returns whether the connection can be reused. */
async function rollBack(client: PoolClient): Promise<boolean> {
  return client.query("ROLLBACK").then(
    () => true,
    () => false,
  );
}

/** Returns whether a statement failed because an earlier one had failed. */
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
