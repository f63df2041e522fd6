import { setTimeout as pause } from "node:timers/promises";
import { EmbeddedPostgres } from "@millwright/database";
import { Pool } from "pg";
import { cpuUsOfTree, statOf, type NamedProcess } from "./process-stat.ts";
import type { Cost } from "./results.ts";
import { round } from "./samples.ts";

/** What work used: processor time by process, in microseconds, and bytes of WAL. */
export type Usage = { readonly cpuUs: Readonly<Record<string, number>>; readonly walBytes: number };

/** Work has settled if the processes use less than this share of one core. */
const QUIET_SHARE = 0.15;
const SETTLE_STEP_MS = 150;
const SETTLE_MS_MAX = 3_000;
/** Maximum time until all sessions have read a changed setting, in milliseconds. */
const RELOAD_MS = 150;
const POSTGRES = "postgres";

/**
 * Prepares the PostgreSQL server that a platform will start in the directory: loads pg_stat_statements, which counts
 * nothing until `CostMeter.statements` turns it on. The platform's own settings of the server remain.
 */
export async function preparePostgres(dataDir: string): Promise<void> {
  const server = await EmbeddedPostgres.start({ dataDir });
  const pool = connect(server.url("postgres"));
  try {
    await pool.query("ALTER SYSTEM SET shared_preload_libraries = 'pg_stat_statements'");
    await pool.query("ALTER SYSTEM SET pg_stat_statements.track = 'none'");
  } finally {
    await pool.end();
    await server.stop();
  }
}

/** A stop of the server may reach the connection before its own end does. */
const connect = (connectionString: string): Pool => new Pool({ connectionString, max: 1 }).on("error", () => {});

/** Measures what work costs in the processes that do it and in PostgreSQL. Linux only. */
export class CostMeter {
  readonly #pool: Pool;
  readonly #postmaster: number;

  private constructor(pool: Pool, postmaster: number) {
    this.#pool = pool;
    this.#postmaster = postmaster;
  }

  /** `connectionString` identifies a database of the platform's server. */
  static async open(connectionString: string): Promise<CostMeter> {
    const pool = connect(connectionString);
    await pool.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
    const { rows } = await pool.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    return new CostMeter(pool, statOf(rows[0]!.pid)!.parent);
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  /**
   * Does work and waits until its consequences have settled. Returns the result and what both used. Background work of
   * other processes in PostgreSQL is included.
   */
  async measure<T>(processes: readonly NamedProcess[], work: () => Promise<T>): Promise<{ result: T; usage: Usage }> {
    const [beforeUs, beforeWal] = [this.#cpuUs(processes), await this.#walBytes()];
    const result = await work();
    await this.#settle(processes);
    const [afterUs, afterWal] = [this.#cpuUs(processes), await this.#walBytes()];
    const cpuUs = Object.fromEntries(Object.entries(afterUs).map(([name, us]) => [name, us - beforeUs[name]!]));
    return { result, usage: { cpuUs, walBytes: afterWal - beforeWal } };
  }

  /** Does work and returns how many statements the databases whose names start with the prefix have executed. */
  async statements(prefix: string, work: () => Promise<unknown>, processes: readonly NamedProcess[]): Promise<number> {
    await this.#track("top");
    try {
      await this.#pool.query("SELECT pg_stat_statements_reset()");
      await work();
      await this.#settle(processes);
      const { rows } = await this.#pool.query<{ calls: string }>(
        `SELECT coalesce(sum(calls), 0) AS calls
           FROM pg_stat_statements JOIN pg_database ON oid = dbid
          WHERE starts_with(datname, $1)`,
        [prefix],
      );
      return Number(rows[0]!.calls);
    } finally {
      await this.#track("none");
    }
  }

  async #track(value: "top" | "none"): Promise<void> {
    await this.#pool.query(`ALTER SYSTEM SET pg_stat_statements.track = '${value}'`);
    await this.#pool.query("SELECT pg_reload_conf()");
    await pause(RELOAD_MS);
  }

  async #settle(processes: readonly NamedProcess[]): Promise<void> {
    const totalUs = (): number => Object.values(this.#cpuUs(processes)).reduce((sum, us) => sum + us, 0);
    const untilMs = performance.now() + SETTLE_MS_MAX;
    for (let before = totalUs(), isBusy = true; isBusy && performance.now() < untilMs;) {
      await pause(SETTLE_STEP_MS);
      const after = totalUs();
      isBusy = after - before > QUIET_SHARE * SETTLE_STEP_MS * 1_000;
      before = after;
    }
  }

  #cpuUs(processes: readonly NamedProcess[]): Record<string, number> {
    const own = processes.map(({ name, pid }): [string, number] => [name, statOf(pid)?.cpuUs ?? 0]);
    return { ...Object.fromEntries(own), [POSTGRES]: cpuUsOfTree(this.#postmaster) };
  }

  async #walBytes(): Promise<number> {
    const { rows } = await this.#pool.query<{ bytes: string }>(
      "SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn AS bytes",
    );
    return Number(rows[0]!.bytes);
  }
}

/** Returns the cost per operation. `statements` was counted per operation in a turn of its own. */
export function costPerOperation(usages: readonly Usage[], operations: number, statements?: number): Cost {
  const sum = (of: (usage: Usage) => number): number =>
    round(usages.reduce((total, usage) => total + of(usage), 0) / operations);
  const names = Object.keys(usages[0]?.cpuUs ?? {});
  return {
    cpuUs: Object.fromEntries(names.map((name) => [name, sum(({ cpuUs }) => cpuUs[name] ?? 0)])),
    walBytes: sum(({ walBytes }) => walBytes),
    ...(statements !== undefined && { statements: round(statements) }),
  };
}
