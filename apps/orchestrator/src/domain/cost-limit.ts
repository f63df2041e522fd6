import { toDollars } from "@millwright/money";

/** A run with a cost limit, and what it and all runs below it have cost, and have set aside for calls under way. */
export type LimitedRun = { readonly runUid: string; readonly limitMicros: bigint; readonly spentMicros: bigint; readonly reservedMicros: bigint };

export type CostDecision = { readonly outcome: "granted" | "wait" } | { readonly outcome: "exceeded"; readonly message: string };

/**
 * Whether one more call may begin. It may while something is left of every limit above it, other calls under way counted at their greatest cost: a limit
 * is passed by less than one call. While they may still leave something, it waits.
 */
export function decideCost(runUid: string, limits: readonly LimitedRun[]): CostDecision {
  const spent = limits.find(({ limitMicros, spentMicros }) => spentMicros >= limitMicros);
  if (spent) return { outcome: "exceeded", message: messageOf(spent, spent.runUid === runUid) };
  return { outcome: limits.some(({ limitMicros, spentMicros, reservedMicros }) => spentMicros + reservedMicros >= limitMicros) ? "wait" : "granted" };
}

const messageOf = ({ runUid, limitMicros, spentMicros }: LimitedRun, isOwn: boolean): string =>
  `${isOwn ? "The run, with the runs below it," : `The run ${runUid}, above this one, with all runs below it,`} has cost $${toDollars(spentMicros)} of $${toDollars(limitMicros)}.`;
