import { invalidArgument } from "@millwright/errors";
import type { ScorerUid } from "./scorer.ts";

/** When failures of a scorer start an improvement run, and the limits of such runs. */
export type SelfImprovementSettings = {
  /** Number of unreviewed failures of one agent that starts a run. */
  readonly failureThreshold: number;
  /** Age of the oldest unreviewed failure that starts a run, in days. */
  readonly failureAgeDays: number;
  readonly runsPerWeek: number;
  /** Cost limit of each run, in micro-dollars. */
  readonly costLimitMicros: number;
};

export type SelfImprovement = SelfImprovementSettings & {
  readonly scorerUid: ScorerUid;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};
/** Self-improvement of a scorer with its present state. */
export type SelfImprovementView = SelfImprovement & {
  readonly unreviewedFailures: number;
  readonly lastRunUid: string | null;
  readonly lastRunAt: Date | null;
};

export const SELF_IMPROVEMENT_DEFAULTS: SelfImprovementSettings = {
  failureThreshold: 25,
  failureAgeDays: 7,
  runsPerWeek: 5,
  costLimitMicros: 5_000_000,
};

const RANGES: Readonly<Record<keyof SelfImprovementSettings, { field: string; max: number }>> = {
  failureThreshold: { field: "failure_threshold", max: 1_000 },
  failureAgeDays: { field: "failure_age_days", max: 90 },
  runsPerWeek: { field: "runs_per_week", max: 50 },
  costLimitMicros: { field: "cost_limit_micros", max: 1_000_000_000 },
};

/** Returns valid settings; 0 selects the default. Errors: scorer_invalid (invalid_argument, with the member). */
export function checkSelfImprovement(given: SelfImprovementSettings): SelfImprovementSettings {
  const settings: { -readonly [K in keyof SelfImprovementSettings]: number } = { ...SELF_IMPROVEMENT_DEFAULTS };
  for (const [name, { field, max }] of Object.entries(RANGES) as [
    keyof SelfImprovementSettings,
    (typeof RANGES)[keyof SelfImprovementSettings],
  ][]) {
    const value = given[name] === 0 ? settings[name] : given[name];
    if (!Number.isInteger(value) || value < 1 || value > max)
      throw invalidArgument("scorer_invalid", `${field} must be an integer from 1 to ${max} (got ${value}).`, {
        field,
      });
    settings[name] = value;
  }
  return settings;
}
