import type { Summary } from "./samples.ts";

/** How the platform runs: in one process, or each service in its own, with NATS. */
export const SETUPS = ["standalone", "processes"] as const;
export type Setup = (typeof SETUPS)[number];

/** One measured line. Rates are per second, latencies in milliseconds. */
export type Row = {
  /** What was done, such as "create a run, 16 at a time". */
  readonly what: string;
  /** Who did it: "millwright", "floor", "pg-boss" … */
  readonly who: string;
  /** Beside which platform, and on whose PostgreSQL. */
  readonly on: Setup;
  readonly perSecond?: number;
  readonly latencyMs?: Summary;
  /** Our rate over this one's (over 1: we are faster), or this one's p50 over ours where only latency is measured. */
  readonly ours?: number;
};

/** A promise of the platform about its figures, and whether it was kept this time. */
export type Target = {
  readonly name: string;
  readonly wanted: string;
  readonly measured: string;
  readonly isMet: boolean;
};

export type MemoryUse = { readonly on: Setup; readonly name: string; readonly residentMb: number };

/** What a scenario measures; on what, the bench knows. */
export type Measured = Omit<Row, "on">;

export type Results = {
  readonly isQuick: boolean;
  /** Scenarios for which no time was left, or that failed. */
  readonly leftOut: readonly string[];
  readonly seconds: number;
  readonly cores: number;
  readonly node: string;
  readonly rows: readonly Row[];
  readonly memory: readonly MemoryUse[];
  readonly targets: readonly Target[];
};
