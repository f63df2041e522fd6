import type { Summary } from "./samples.ts";

/** Deployment of the platform: one process for all services, or one process per service, with NATS. */
export const SETUPS = ["standalone", "processes"] as const;
export type Setup = (typeof SETUPS)[number];

/** One line of the results. Rates are per second, latencies in milliseconds. */
export type Row = {
  /** The measured operation, such as "create a run, 16 at a time". */
  readonly what: string;
  /** The measured implementation: "millwright", "floor", "pg-boss" … */
  readonly who: string;
  /** The deployment that was measured, or whose PostgreSQL the compared implementation used. */
  readonly on: Setup;
  readonly perSecond?: number;
  readonly latencyMs?: Summary;
  /**
   * The platform's rate divided by this row's (above 1: the platform is faster), or this row's p50 divided by the
   * platform's if only latency was measured.
   */
  readonly ours?: number;
  readonly cost?: Cost;
  /** Growth of the resident memory of the gateway per connected client. */
  readonly clientKb?: number;
};

/** What one operation costs on the servers, its consequences included. The measuring process is not counted. */
export type Cost = {
  /** Processor time in microseconds of each process, and of all processes of PostgreSQL together (`postgres`). */
  readonly cpuUs: Readonly<Record<string, number>>;
  readonly walBytes: number;
  /** Statements in PostgreSQL, BEGIN and COMMIT included; absent if they were not counted. */
  readonly statements?: number;
};

/** A performance target of the platform, and whether it was met. */
export type Target = {
  readonly on: Setup;
  readonly name: string;
  readonly wanted: string;
  readonly measured: string;
  readonly isMet: boolean;
};

export type MemoryUse = {
  readonly on: Setup;
  readonly name: string;
  readonly residentMb: number;
  /** Pages that several processes share, such as those of the Node.js binary, are divided among them. */
  readonly ownMb: number;
};

/** Result of a scenario. The benchmark adds the deployment. */
export type Measured = Omit<Row, "on">;

export type Results = {
  readonly isQuick: boolean;
  /** Scenarios that failed or exceeded the deadline. */
  readonly unmeasured: readonly string[];
  readonly seconds: number;
  readonly cores: number;
  readonly node: string;
  readonly rows: readonly Row[];
  readonly memory: readonly MemoryUse[];
  readonly targets: readonly Target[];
};
