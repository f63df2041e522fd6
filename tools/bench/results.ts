import type { Summary } from "./samples.ts";

/** One measured line. Rates are per second, latencies in milliseconds. */
export type Row = {
  /** What was done, such as "create a run, 16 at a time". */
  readonly what: string;
  /** Who did it: "millwright", "floor", "pg-boss" … */
  readonly who: string;
  readonly perSecond?: number;
  readonly latencyMs?: Summary;
  /** Our rate over this one's (over 1: we are faster), or this one's p50 over ours where only latency is measured. */
  readonly ours?: number;
};

/** A promise of the platform about its figures, and whether it was kept this time. */
export type Target = { readonly name: string; readonly wanted: string; readonly measured: string; readonly isMet: boolean };

export type MemoryUse = { readonly name: string; readonly residentMb: number };

export type Results = {
  readonly isQuick: boolean;
  readonly seconds: number;
  readonly cores: number;
  readonly node: string;
  readonly rows: readonly Row[];
  readonly memory: readonly MemoryUse[];
  readonly targets: readonly Target[];
};
