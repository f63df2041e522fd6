import { z } from "zod";
import { isMember, type Caller } from "@millwright/caller";
import type { orchestrator } from "@millwright/contracts";
import { notFound } from "@millwright/errors";
import { toDollars, toMicros } from "@millwright/money";
import { onBehalf, type Upstreams } from "../../clients/upstreams.ts";
import { pathUid, route, timestamp, uuid, type Route } from "../../rest/index.ts";
import { isoTime } from "../formats/json-values.ts";

const limit = z
  .number()
  .min(0.000_001)
  .max(1_000_000_000)
  .meta({ description: "In dollars, with micro-dollar precision." });
const thresholds = z.array(z.int().min(1).max(100)).max(10).meta({
  description: "Shares of the limit, each published once per period as `millwright.budget.threshold_reached.v1`.",
});
const scope = z.enum(["team", "factory", "schedule", "automation"]);
const period = z.enum(["day", "week", "month", "total"]);

/** The public record of a budget and its spend in the current period. */
export const Budget = z
  .object({
    uid: z.string(),
    scope,
    scope_uid: z.string(),
    period,
    limit_usd: z.number(),
    thresholds_percent: z.array(z.int()),
    spent_usd: z.number().meta({ description: "Cost of the recorded model calls of the current period." }),
    reserved_usd: z.number().meta({ description: "Reserved for model calls in progress." }),
    remaining_usd: z.number().meta({ description: "Limit minus spend and reservations, at least 0." }),
    period_start: timestamp(),
    resets_at: timestamp().nullable().meta({ description: "null: never." }),
    created_at: timestamp(),
    updated_at: timestamp(),
  })
  .meta({ id: "Budget" });

const NewBudget = z.object({
  scope,
  scope_uid: uuid().optional().meta({ description: "Uid of the factory, schedule or automation. Absent: the team." }),
  period: period.meta({ description: "UTC; weeks begin on Sunday." }),
  limit_usd: limit,
  thresholds_percent: thresholds.optional().meta({ description: "Absent: 50, 80, 100." }),
});

const teamParams = z.object({ uid: pathUid("team") });
const budgetParams = z.object({ uid: pathUid("team"), budget_uid: pathUid("budget") });
const PATH = "/team/{uid}/budgets";

/** Returns the routes of a team's budgets. Millwright extension. */
export function budgetRoutes({ budgets }: Pick<Upstreams, "budgets">): Route[] {
  return [
    route({
      method: "GET",
      path: PATH,
      extension: true,
      summary: "List a team's budgets",
      description: "Oldest first, each with its spend in the current period.",
      verbs: ["run.view"],
      params: teamParams,
      errors: [403],
      response: z.object({ budgets: z.array(Budget) }),
      handler: async (input) => {
        const { budgets: found } = await budgets.listBudgets({ teamUid: teamOf(input) }, onBehalf(input));
        return { budgets: found.map(budgetRecord) };
      },
    }),
    route({
      method: "POST",
      path: PATH,
      extension: true,
      summary: "Create a budget",
      description: "Counts spend from its creation on. 409 `budget_exists`: a budget for this scope and period exists.",
      verbs: ["team.manage"],
      params: teamParams,
      errors: [403, 409],
      idempotent: true,
      status: 201,
      body: NewBudget,
      response: Budget,
      handler: async (input) => {
        const { body } = input;
        const upstreamRequest = {
          teamUid: teamOf(input),
          scope: body.scope,
          scopeUid: body.scope_uid ?? "",
          period: body.period,
          limitMicros: toMicros(body.limit_usd),
        };
        const idempotencyKey = input.request.idempotency?.key ?? "";
        const { budget } = await budgets.createBudget(
          { ...upstreamRequest, ...thresholdsOf(body), idempotencyKey },
          onBehalf(input),
        );
        return budgetRecord(budget!);
      },
    }),
    route({
      method: "GET",
      path: `${PATH}/{budget_uid}`,
      extension: true,
      summary: "Read a budget",
      verbs: ["run.view"],
      params: budgetParams,
      errors: [403],
      response: Budget,
      handler: async (input) =>
        budgetRecord(
          (await budgets.getBudget({ teamUid: teamOf(input), uid: input.params.budget_uid }, onBehalf(input))).budget!,
        ),
    }),
    route({
      method: "PATCH",
      path: `${PATH}/{budget_uid}`,
      extension: true,
      summary: "Change a budget's limit or thresholds",
      description: "Applies from the next model call on. Runs that wait for the budget are requeued within seconds.",
      verbs: ["team.manage"],
      params: budgetParams,
      errors: [403],
      body: z.object({ limit_usd: limit.optional(), thresholds_percent: thresholds.optional() }),
      response: Budget,
      handler: async (input) => {
        const { body, params } = input;
        const changes = {
          limitMicros: body.limit_usd === undefined ? undefined : toMicros(body.limit_usd),
          ...thresholdsOf(body),
        };
        return budgetRecord(
          (await budgets.updateBudget({ teamUid: teamOf(input), uid: params.budget_uid, ...changes }, onBehalf(input)))
            .budget!,
        );
      },
    }),
    route({
      method: "DELETE",
      path: `${PATH}/{budget_uid}`,
      extension: true,
      summary: "Delete a budget",
      verbs: ["team.manage"],
      params: budgetParams,
      errors: [403],
      status: 204,
      handler: async (input) =>
        void (await budgets.deleteBudget({ teamUid: teamOf(input), uid: input.params.budget_uid }, onBehalf(input))),
    }),
  ];
}

/** Returns the team uid of the path. Throws `team_not_found` if the caller is not a member of the team. */
function teamOf({ caller, params }: { readonly caller: Caller; readonly params: { readonly uid: string } }): string {
  if (!isMember(caller, params.uid)) throw notFound("team");
  return params.uid;
}

const thresholdsOf = ({ thresholds_percent: percents }: { readonly thresholds_percent?: number[] | undefined }) =>
  percents ? { thresholds: { percents } } : {};

/** Returns the public record of a budget. */
export function budgetRecord(budget: orchestrator.Budget): z.input<typeof Budget> {
  const { limitMicros, spentMicros, reservedMicros } = budget;
  const remaining = limitMicros - spentMicros - reservedMicros;
  return {
    uid: budget.uid,
    scope: budget.scope as z.input<typeof scope>,
    scope_uid: budget.scopeUid,
    period: budget.period as z.input<typeof period>,
    limit_usd: toDollars(limitMicros),
    thresholds_percent: budget.thresholdsPercent,
    spent_usd: toDollars(spentMicros),
    reserved_usd: toDollars(reservedMicros),
    remaining_usd: toDollars(remaining > 0n ? remaining : 0n),
    period_start: isoTime(budget.periodStart!),
    resets_at: budget.resetsAt ? isoTime(budget.resetsAt) : null,
    created_at: isoTime(budget.createdAt!),
    updated_at: isoTime(budget.updatedAt!),
  };
}
