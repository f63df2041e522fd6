import { actorOf, type Caller } from "@millwright/caller";
import type { Sql } from "@millwright/database";
import { appendEvents, type NewEvent } from "@millwright/events";
import { newUid } from "@millwright/ids";
import { omitUndefined } from "@millwright/json";
import { toDollars } from "@millwright/money";
import type { Budget, CountedPeriod } from "../domain/budget.ts";

const budgetEvent = (
  type: string,
  budget: Budget,
  by: Pick<NewEvent, "actor" | "requestId">,
  more: NewEvent["payload"] = {},
): NewEvent => ({
  entity: "budget",
  type: `millwright.budget.${type}.v1`,
  entityUid: budget.uid,
  entityVersion: Number(budget.version),
  teamUid: budget.teamUid,
  ...by,
  payload: {
    budget_uid: budget.uid,
    scope: budget.scope,
    scope_uid: budget.scopeUid,
    period: budget.period,
    limit_usd: toDollars(budget.limitMicros),
    ...more,
  },
});

const by = (caller: Caller): Pick<NewEvent, "actor" | "requestId"> => ({
  actor: { type: actorOf(caller).type, uid: actorOf(caller).uid },
  requestId: caller.requestId,
});

/** Appends events of budgets, in the transaction that changes the budget. */
export const budgetEvents = {
  created: (tx: Sql, budget: Budget, caller: Caller): Promise<void> =>
    appendEvents(tx, [budgetEvent("created", budget, by(caller))]),
  updated: (tx: Sql, budget: Budget, changed: readonly string[], caller: Caller): Promise<void> =>
    appendEvents(tx, [budgetEvent("updated", budget, by(caller), { changed: [...changed] })]),
  deleted: (tx: Sql, budget: Budget, caller: Caller): Promise<void> =>
    appendEvents(tx, [budgetEvent("deleted", budget, by(caller))]),

  /**
   * Appends the event that runs under the budget have spent `percent` of its limit. The caller appends it at most once
   * per budget, period and threshold.
   */
  thresholdReached(
    tx: Sql,
    budget: Budget,
    percent: number,
    spentMicros: bigint,
    { start, resetsAt }: CountedPeriod,
  ): Promise<void> {
    const reached = omitUndefined({
      threshold_percent: percent,
      spent_usd: toDollars(spentMicros),
      period_start: start.toISOString(),
      resets_at: resetsAt?.toISOString(),
    });
    return appendEvents(tx, [
      budgetEvent(
        "threshold_reached",
        budget,
        { actor: { type: "service", uid: "orchestrator" }, requestId: newUid() },
        reached,
      ),
    ]);
  },
};
