import { toDollars } from "@millwright/money";
import { exhaustedMessage, type CostLimit, type LimitingBudget } from "./budget.ts";

/** A run with a cost limit. The amounts spent and reserved are those of the run and all its descendants. */
export type LimitedRun = CostLimit & { readonly runUid: string };

export type CostDecision =
  | { readonly outcome: "granted" | "wait" }
  | { readonly outcome: "exceeded"; readonly message: string };

/**
 * Decides whether one more model call may start. It may start while every limit has something left after subtracting
 * the greatest possible cost of each call in progress, so a limit is exceeded by less than the cost of one call. The
 * call waits while calls in progress may still leave something. If several limits are spent, the message names the one
 * that is exceeded most.
 */
export function decideCost(runUid: string, limits: readonly (LimitedRun | LimitingBudget)[]): CostDecision {
  const [spent] = limits
    .filter((limit) => remainingOf(limit) <= 0n)
    .toSorted((a, b) => Number(remainingOf(a) - remainingOf(b)));
  if (spent)
    return {
      outcome: "exceeded",
      message: "budget" in spent ? exhaustedMessage(spent) : messageOf(spent, spent.runUid === runUid),
    };
  return { outcome: limits.some((limit) => remainingOf(limit) <= limit.reservedMicros) ? "wait" : "granted" };
}

const remainingOf = ({ limitMicros, spentMicros }: CostLimit): bigint => limitMicros - spentMicros;

const messageOf = ({ runUid, limitMicros, spentMicros }: LimitedRun, isOwn: boolean): string =>
  `${isOwn ? "This run" : `The ancestor run ${runUid}`} and its descendants have cost $${toDollars(spentMicros)}; the cost limit is $${toDollars(limitMicros)}.`;
