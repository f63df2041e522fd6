import { createHash } from "node:crypto";
import { Pool, types } from "pg";
import type { PoolClient } from "pg";
import { safeNumber } from "./sql.ts";
import type { Sql, SqlResult } from "./sql.ts";

export type DatabaseOptions = {
  /** Most connections at once. Default 6. */
  max?: number;
  /** Shown in `pg_stat_activity`. */
  applicationName?: string;
};

/** Hears what was announced by a transaction after it has committed. Must not throw. */
export type CommitListener = (news: ReadonlySet<string>) => void;

/** Texts whose statement is kept prepared per connection; beyond this many, texts are sent unprepared. */
const PREPARED_TEXTS_MAX = 500;

/** One service's PostgreSQL database: a pool, autocommitted statements and transactions. */
export class Database {
  readonly pool: Pool;
  /** Every statement commits by itself. */
  readonly sql: Sql;
  readonly #statementNames = new Map<string, string | undefined>();
  readonly #listeners = new Set<CommitListener>();

  private constructor(pool: Pool) {
    this.pool = pool;
    this.sql = { query: (text, params) => this.#run(pool, text, params), announce: (news) => this.#tell(new Set([news])) };
  }

  /** Opens a pool; connects with the first statement, so a database that is still starting is no error here. */
  static open(url: string, options: DatabaseOptions = {}): Database {
    const pool = new Pool({
      connectionString: url,
      max: options.max ?? 6,
      application_name: options.applicationName,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      types: { getTypeParser },
    });
    // A broken connection fails its statement; without these listeners it would end the process as well.
    pool.on("error", ignore);
    pool.on("connect", (client) => client.on("error", ignore));
    return new Database(pool);
  }

  /**
   * Runs `f` in one transaction at READ COMMITTED: commits when it returns, rolls back and rethrows when it throws.
   * Keep remote calls out of it.
   */
  async transaction<T>(f: (tx: Sql) => Promise<T>): Promise<T> {
    const client = await this.pool.connect();
    const news = new Set<string>();
    const tx: Sql = { query: (text, params) => this.#run(client, text, params), announce: (what) => void news.add(what) };
    let result: T;
    try {
      await client.query("BEGIN");
      result = await f(tx);
      await commit(client);
    } catch (error) {
      client.release(!(await rollBack(client)));
      throw error;
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
    if (!this.pool.ended) await this.pool.end();
  }

  #tell(news: ReadonlySet<string>): void {
    for (const listener of this.#listeners) listener(news);
  }

  async #run<R>(on: Pool | PoolClient, text: string, params?: readonly unknown[]): Promise<SqlResult<R>> {
    const name = this.#statementName(text);
    const result = await on.query({ text, ...(name && { name }), ...(params && { values: [...params] }) });
    return { rows: result.rows as R[], rowCount: result.rowCount ?? 0 };
  }

  /** The second use of a text prepares it. Several statements in one text cannot be prepared. */
  #statementName(text: string): string | undefined {
    if (!this.#statementNames.has(text)) {
      if (this.#statementNames.size < PREPARED_TEXTS_MAX && !text.includes(";")) this.#statementNames.set(text, undefined);
      return undefined;
    }
    const known = this.#statementNames.get(text);
    if (known) return known;
    const name = `s_${createHash("sha256").update(text).digest("hex").slice(0, 32)}`;
    this.#statementNames.set(text, name);
    return name;
  }
}

/** PostgreSQL answers COMMIT with ROLLBACK when a statement failed and its error was swallowed. */
async function commit(client: PoolClient): Promise<void> {
  const { command } = await client.query("COMMIT");
  if (command !== "COMMIT") throw new Error("The transaction was rolled back: a failed statement was not reported by its code.");
}

/** Whether the connection is fit for further use. */
async function rollBack(client: PoolClient): Promise<boolean> {
  return client.query("ROLLBACK").then(() => true, () => false);
}

const INT8: number = types.builtins.INT8;
const DATE: number = types.builtins.DATE;

const ignore = (): void => {};
const asText = (value: string): string => value;

function getTypeParser(oid: number, format?: "text" | "binary"): (value: string) => unknown {
  if (oid === INT8) return safeNumber;
  if (oid === DATE) return asText; // a calendar day has no time zone
  return types.getTypeParser(oid, format);
}
