import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { orchestrator } from "@millwright/contracts";
import { callerOf, optionalTimestamp } from "@millwright/rpc";
import {
  createBudget,
  deleteBudget,
  getBudget,
  listBudgets,
  updateBudget,
  type BudgetsDeps,
  type BudgetView,
} from "../usecases/budgets.ts";

/** Registers BudgetService: the spending limits of teams. */
export function budgetRoutes(router: ConnectRouter, deps: BudgetsDeps): void {
  router.service(orchestrator.BudgetService, {
    async listBudgets({ teamUid }, context) {
      return { budgets: (await listBudgets(deps, callerOf(context), teamUid)).map(budgetMessage) };
    },
    async getBudget({ teamUid, uid }, context) {
      return { budget: budgetMessage(await getBudget(deps, callerOf(context), teamUid, uid)) };
    },
    async createBudget({ teamUid, scope, scopeUid, period, limitMicros, thresholds, idempotencyKey }, context) {
      const requested = { teamUid, scope, scopeUid, period, limitMicros, thresholdsPercent: thresholds?.percents };
      return { budget: budgetMessage(await createBudget(deps, callerOf(context), requested, idempotencyKey)) };
    },
    async updateBudget({ teamUid, uid, limitMicros, thresholds }, context) {
      const changes = {
        limitMicros,
        thresholdsPercent: thresholds?.percents,
      };
      return { budget: budgetMessage(await updateBudget(deps, callerOf(context), { teamUid, uid, ...changes })) };
    },
    async deleteBudget({ teamUid, uid }, context) {
      await deleteBudget(deps, callerOf(context), teamUid, uid);
      return {};
    },
  });
}

/** Converts a budget and its current period to a message. */
export const budgetMessage = ({ budget, period, spentMicros, reservedMicros }: BudgetView): orchestrator.Budget =>
  create(orchestrator.BudgetSchema, {
    uid: budget.uid,
    teamUid: budget.teamUid,
    scope: budget.scope,
    scopeUid: budget.scopeUid,
    period: budget.period,
    limitMicros: budget.limitMicros,
    thresholdsPercent: [...budget.thresholdsPercent],
    spentMicros,
    reservedMicros,
    periodStart: timestampFromDate(period.start),
    resetsAt: optionalTimestamp(period.resetsAt),
    createdAt: timestampFromDate(budget.createdAt),
    updatedAt: timestampFromDate(budget.updatedAt),
  });
