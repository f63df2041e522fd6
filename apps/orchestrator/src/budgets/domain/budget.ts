import { invalidArgument } from "@millwright/errors";
import { isUuid } from "@millwright/ids";
import { toDollars } from "@millwright/money";
import { calendarPeriod, PERIOD_UNITS } from "@millwright/periods";

/** A limit, the amount spent under it, and the amount reserved for calls in progress, in micro-dollars. */
export type CostLimit = { readonly limitMicros: bigint; readonly spentMicros: bigint; readonly reservedMicros: bigint };

export const BUDGET_SCOPES = ["team", "factory", "schedule", "automation"] as const;
export type BudgetScope = (typeof BUDGET_SCOPES)[number];

export const BUDGET_PERIODS = [...PERIOD_UNITS, "total"] as const;
export type BudgetPeriod = (typeof BUDGET_PERIODS)[number];

export const DEFAULT_THRESHOLDS_PERCENT: readonly number[] = [50, 80, 100];
const THRESHOLDS_MAX = 10;
const LIMIT_MICROS_MAX = 1_000_000_000_000_000n;

/** A spending cap. It covers every run tree whose root belongs to its scope. */
export type Budget = {
  readonly uid: string;
  readonly teamUid: string;
  readonly scope: BudgetScope;
  /** Scope team: the uid of the team itself. */
  readonly scopeUid: string;
  readonly period: BudgetPeriod;
  readonly limitMicros: bigint;
  /** Ascending, distinct. */
  readonly thresholdsPercent: readonly number[];
  readonly version: bigint;
  readonly createdAt: Date;
  readonly updatedAt: Date;
};

/** The mutable settings. Scope and period identify a budget. */
export type BudgetSettings = Pick<Budget, "limitMicros" | "thresholdsPercent">;

/** The period in which a budget counts spending. Without `resetsAt` it never ends. */
export type CountedPeriod = { readonly start: Date; readonly resetsAt?: Date };

/**
 * Returns the period that contains `now`. Days, weeks (from Sunday) and months start at 00:00 UTC; `total` starts when
 * the budget is created.
 */
export function periodAt({ period, createdAt }: Pick<Budget, "period" | "createdAt">, now: Date): CountedPeriod {
  if (period === "total") return { start: createdAt };
  const { start, end } = calendarPeriod(now, period);
  return { start, resetsAt: end };
}

/** Returns the thresholds that `spentMicros` has reached and that are not in `published`, ascending. */
export const newThresholds = (
  { limitMicros, thresholdsPercent }: BudgetSettings,
  spentMicros: bigint,
  published: readonly number[],
): number[] =>
  thresholdsPercent.filter(
    (percent) => spentMicros * 100n >= limitMicros * BigInt(percent) && !published.includes(percent),
  );

/**
 * A budget as a limit of the runs it covers, with their spending in the period and the amount reserved for calls in
 * progress.
 */
export type LimitingBudget = CostLimit & { readonly budget: Budget; readonly period: CountedPeriod };

/** Returns whether a budget has nothing left for another call. */
export const isExhausted = ({ spentMicros, limitMicros }: LimitingBudget): boolean => spentMicros >= limitMicros;

/** Returns whether a budget has reached one of its thresholds or is exhausted. */
export const isNearlyExhausted = (limiting: LimitingBudget): boolean =>
  isExhausted(limiting) || newThresholds(limiting.budget, limiting.spentMicros, []).length > 0;

const ADJECTIVES: Readonly<Record<BudgetPeriod, string>> = {
  day: "daily",
  week: "weekly",
  month: "monthly",
  total: "total",
};

/**
 * Returns the message of a run that an exhausted budget stops: the budget, its limit, the amount spent, and when it
 * resets.
 */
export function exhaustedMessage({ budget, period, spentMicros, limitMicros }: LimitingBudget): string {
  const subject = budget.scope === "team" ? "team" : `${budget.scope} ${budget.scopeUid}`;
  const reset = period.resetsAt ? `It resets at ${period.resetsAt.toISOString()}.` : "It does not reset.";
  return `The ${ADJECTIVES[budget.period]} budget ${budget.uid} of the ${subject} is exhausted: $${toDollars(spentMicros)} of $${toDollars(limitMicros)} is spent. ${reset}`;
}

export type NewBudget = Pick<Budget, "scope" | "scopeUid" | "period"> & BudgetSettings;

/** A budget as requested, unchecked. */
export type RequestedBudget = {
  readonly teamUid: string;
  readonly scope: string;
  /** "" = the uid of the team, for scope team. */
  readonly scopeUid: string;
  readonly period: string;
  readonly limitMicros: bigint;
  /** Absent: the default thresholds. */
  readonly thresholdsPercent: readonly number[] | undefined;
};

/** Returns the checked values of a team's new budget. Errors: budget_invalid. */
export function checkNewBudget(requested: RequestedBudget): NewBudget {
  const scope = BUDGET_SCOPES.find((known) => known === requested.scope);
  if (!scope) throw invalid(`scope must be one of ${BUDGET_SCOPES.join(", ")}`);
  const period = BUDGET_PERIODS.find((known) => known === requested.period);
  if (!period) throw invalid(`period must be one of ${BUDGET_PERIODS.join(", ")}`);
  const scopeUid = (
    requested.scopeUid === "" && scope === "team" ? requested.teamUid : requested.scopeUid
  ).toLowerCase();
  if (!isUuid(scopeUid)) throw invalid(`scope_uid must be the uid of a ${scope}`);
  if (scope === "team" && scopeUid !== requested.teamUid)
    throw invalid("scope_uid must be the team's own uid, or absent");
  return {
    scope,
    scopeUid,
    period,
    limitMicros: checkLimit(requested.limitMicros),
    thresholdsPercent: checkThresholds(requested.thresholdsPercent ?? DEFAULT_THRESHOLDS_PERCENT),
  };
}

/** Returns the limit if it is in the allowed range. Errors: budget_invalid. */
export function checkLimit(micros: bigint): bigint {
  if (micros >= 1n && micros <= LIMIT_MICROS_MAX) return micros;
  throw invalid(`limit_usd must be between 0.000001 and ${toDollars(LIMIT_MICROS_MAX)} (got ${toDollars(micros)})`);
}

/** Returns the thresholds in ascending order without duplicates. Errors: budget_invalid. */
export function checkThresholds(percents: readonly number[]): number[] {
  if (percents.length > THRESHOLDS_MAX)
    throw invalid(`thresholds_percent must have at most ${THRESHOLDS_MAX} members (got ${percents.length})`);
  const wrong = percents.find((percent) => !Number.isInteger(percent) || percent < 1 || percent > 100);
  if (wrong !== undefined) throw invalid(`thresholds_percent must be whole numbers between 1 and 100 (got ${wrong})`);
  return [...new Set(percents)].toSorted((a, b) => a - b);
}

const invalid = (text: string) => invalidArgument("budget_invalid", `${text}.`);
