import type { Baseline } from "./baseline/start.ts";
import type { CostMeter } from "./cost.ts";
import type { Platform } from "./platform.ts";

/** What every scenario receives. */
export type Bench = {
  readonly platform: Platform;
  readonly baseline: Baseline;
  readonly meter: CostMeter;
  readonly isQuick: boolean;
  /** Number of runs that `listing` reads; absent: its default. */
  readonly runs?: number;
};
