import type { Baseline } from "./baseline/start.ts";
import type { Platform } from "./platform.ts";

/** What every scenario receives. */
export type Bench = {
  readonly platform: Platform;
  readonly baseline: Baseline;
  readonly isQuick: boolean;
};
