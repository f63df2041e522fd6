import { z } from "zod";
import { PERIOD_UNITS } from "@millwright/periods";
import { EXTENSION, PageInfo, timestamp, UserProfile } from "../../rest/index.ts";

/** Members that identify the scope of every record. */
const about = {
  team_uid: z.string(),
  factory_uid: z.string(),
  as_of: timestamp().meta({ description: "The data is complete up to this time." }),
};
const ranged = { ...about, start_date: timestamp(), end_date: timestamp() };
const periodic = {
  ...ranged,
  group_by_period: z.enum(PERIOD_UNITS).nullable(),
  period_list: z.array(z.string()).optional().meta({
    description: "Calendar start of each period, UTC, in the order of every `series`. Present with group_by_period.",
  }),
};

const count = z.int();
const Count = z.object({ total: count, series: z.array(count).optional() }).meta({ id: "MetricCount" });
const Mean = z
  .object({ mean: z.number().nullable(), series: z.array(z.number().nullable()).optional() })
  .meta({ id: "MetricMean" });

const funnel = {
  total_merged: count.meta({ description: "Merges in the factory's repositories, by anyone." }),
  factory_merged: count.meta({ description: "Of those, pull requests that runs of the factory produced." }),
  factory_merged_observed: count.meta({ description: "Of those, pull requests whose whole history is known." }),
  merged_without_human_code_change: count.meta({
    description: "Of those, pull requests to which no person pushed code.",
  }),
  rate: z
    .number()
    .nullable()
    .meta({ ...EXTENSION, description: "Autonomy: merged_without_human_code_change / factory_merged_observed." }),
  repos: z.array(z.string()),
};
const impact = {
  additions: count,
  deletions: count,
  merged_pr_count: count,
  measured_pr_count: count.meta({ description: "Pull requests whose lines are known." }),
};
const stage = z.object({ median_seconds: z.number().nullable(), measured_pr_count: count });
const latency = {
  merged_pr_count: count,
  kickoff_to_pr: stage,
  pr_to_first_review: stage,
  first_review_to_merge: stage,
  kickoff_to_merge: stage,
};

export const FactoryMetrics = z
  .object({
    ...periodic,
    run_count: Count,
    pr_count: Count,
    merged_pr_count: Count.meta({
      description: "Of the pull requests opened in the range or period, those merged by now.",
    }),
    average_human_interactions_per_pr: Mean,
    autonomy_funnel: z
      .object({ ...funnel, series: z.array(z.object(funnel)).optional() })
      .meta({ description: "By merge time." }),
    impact: z
      .object({ ...impact, series: z.array(z.object(impact)).optional() })
      .meta({ description: "By merge time." }),
    pr_latency: z
      .object({ ...latency, series: z.array(z.object(latency)).optional() })
      .meta({ description: "Medians, by merge time." }),
  })
  .meta({ id: "FactoryMetrics" });

export const RUN_DIMENSIONS = ["agent_type", "status", "source", "root_vs_subrun", "model", "harness"] as const;

export const RunBreakdown = z
  .object({
    ...periodic,
    group_by: z.enum(RUN_DIMENSIONS),
    total: Count,
    root_run_count: Count,
    groups: z.array(
      z.object({ key: z.string(), label: z.string().optional(), total: count, series: z.array(count).optional() }),
    ),
  })
  .meta({ id: "FactoryRunBreakdown" });

const dollars = { inference: z.number(), compute: z.number(), platform: z.number(), total: z.number() };
const Dollars = z.object(dollars).meta({ id: "Dollars" });
const mean = z.number().nullable();
const cost = { pr_count: count, dollars: Dollars, mean, inference_mean: mean, compute_mean: mean, platform_mean: mean };

export const CostPerPullRequest = z
  .object({ ...periodic, ...cost, series: z.array(z.object(cost)).optional() })
  .meta({ id: "FactoryCostPerPullRequest" });

export const COST_DIMENSIONS = ["source", "user", "agent", "model"] as const;

export const CostBreakdown = z
  .object({
    ...periodic,
    group_by: z.enum(COST_DIMENSIONS),
    total: z.object({ ...dollars, series: z.array(Dollars).optional() }),
    groups: z.array(
      z.object({
        key: z.string(),
        label: z.string(),
        deleted: z.boolean().meta({ description: "The user or agent no longer exists." }),
        photo_url: z.string().optional(),
        dollars: Dollars,
        series: z.array(Dollars).optional(),
      }),
    ),
    coverage: z
      .object({
        model_calls: count,
        priced_model_calls: count,
        compute_intervals: count,
        priced_compute_intervals: count,
      })
      .meta({ ...EXTENSION, description: "Calls and intervals without a price are not included in any sum." }),
  })
  .meta({ id: "FactoryCostBreakdown" });

export const CostBySize = z
  .object({
    ...periodic,
    pr_count: count,
    sized_pr_count: count.meta({ description: "Pull requests whose lines are known; the others are in no bucket." }),
    buckets: z
      .array(z.object({ size: z.enum(["S", "M", "L", "XL"]), pr_count: count, mean, series: z.array(mean).optional() }))
      .meta({ description: "By added and deleted lines: S below 100, M below 500, L below 1000, XL." }),
  })
  .meta({ id: "FactoryCostBySize" });

export const PULL_REQUEST_STATES = ["open", "draft", "merged", "closed"] as const;

const time = timestamp().nullable();
const int = z.int().nullable();
const seconds = z.number().nullable();
const Interactions = z.object({
  ...{
    opened: count,
    code_push: count,
    review_approved: count,
    review_changes_requested: count,
    review_commented: count,
  },
  ...{ comment: count, review_comment: count, pr_action: count, follow_up_message: count, total: count },
});

export const PullRequest = z
  .object({
    provider: z.string(),
    repo_full_name: z.string(),
    pr_number: z.int(),
    url: z.string(),
    title: z.string().nullable(),
    author_login: z.string().nullable(),
    factory_uid: z.string(),
    team_uid: z.string(),
    state: z.enum(PULL_REQUEST_STATES),
    ...{ opened_at: time, first_human_review_at: time, merged_at: time, closed_at: time },
    updated_at: time.meta({ description: "Set by the code host's clock." }),
    ...{ additions: int, deletions: int, changed_files: int, num_commits: int },
    human_interactions: Interactions.nullable().meta({
      description: "null: no data from the code host.",
    }),
    human_code_change: z.boolean().nullable(),
    history_complete: z.boolean(),
    runs: z.array(z.object({ run_id: z.string(), root_run_id: z.string(), created_at: timestamp() })),
    kickoff_at: time,
    cycle_time: z
      .object({
        kickoff_to_pr: seconds,
        pr_to_first_review: seconds,
        first_review_to_merge: seconds,
        kickoff_to_merge: seconds,
      })
      .meta({ description: "Seconds." }),
    first_seen_at: time.meta({ ...EXTENSION, description: "Time at which a run first reported the pull request." }),
  })
  .meta({ id: "FactoryPullRequest" });

export const PullRequestPage = z
  .object({ ...about, data: z.array(PullRequest), page_info: PageInfo })
  .meta({ id: "FactoryPullRequestPage" });

export const CostliestPullRequests = z
  .object({
    ...ranged,
    data: z.array(
      PullRequest.extend({
        dollars: Dollars,
        models: z
          .array(z.object({ model_id: z.string(), dollars: z.number(), share: z.number() }))
          .meta({ description: "Inference per configured model; the shares sum to 1." }),
        creator: z.object(UserProfile.shape).nullable(),
        source: z.string().nullable(),
        requested_model_id: z.string().nullable(),
      }).meta({ id: "FactoryCostedPullRequest" }),
    ),
  })
  .meta({ id: "FactoryCostliestPullRequests" });
