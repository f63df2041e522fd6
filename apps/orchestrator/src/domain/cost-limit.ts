import { toDollars } from "@millwright/money";
import { exhaustedMessage, type LimitingBudget } from "./budget.ts";

/** A limit, what was spent under it, and what is set aside for calls under way. */
export type CostLimit = { readonly limitMicros: bigint; readonly spentMicros: bigint; readonly reservedMicros: bigint };

/** A run with a cost limit, and what it and all runs below it have cost, and have set aside for calls under way. */
export type LimitedRun = CostLimit & { readonly runUid: string };

export type CostDecision =
  | { readonly outcome: "granted" | "wait" }
  | { readonly outcome: "exceeded"; readonly message: string };

/**
 * Whether one more call may begin. It may while something is left of every limit above it, other calls under way counted at their greatest cost: a limit
 * is passed by less than one call. While they may still leave something, it waits. Of several that are spent the tightest is named.
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
  `${isOwn ? "The run, with the runs below it," : `The run ${runUid}, above this one, with all runs below it,`} has cost $${toDollars(spentMicros)} of $${toDollars(limitMicros)}.`;
