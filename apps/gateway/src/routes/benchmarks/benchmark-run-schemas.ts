import { z } from "zod";
import { EXTENSION, timestamp, UserProfile } from "../../rest/index.ts";
import { BenchmarkResults } from "./benchmark-result-schemas.ts";
import { Configuration, NewConfiguration, SuiteTask } from "./benchmark-schemas.ts";
import { BenchmarkRunState, ScoreProgress, TrialProgress } from "./benchmark-state-schemas.ts";

export const RunInclude = z.enum(["launch_settings", "results", "creator"]);
export const ResultsInclude = z.enum(["configuration_metrics", "scorer_metrics", "task_metrics", "tag_metrics"]);
const ScorerId = z.union([z.int(), z.string().min(1)]);

/** The body of a launch. `parallelism` is a Millwright extension. */
export const Launch = z
  .object({
    repetition_count: z.int().min(1).meta({ description: "Trials per task and configuration." }),
    configurations: z
      .array(NewConfiguration)
      .min(1, "must not be empty; leave it out for those of the suite")
      .optional()
      .meta({ description: "Absent: those of the suite." }),
    scorer_selection: z.array(ScorerId).optional().meta({
      description:
        "Uids or numeric ids of scorers. Absent or empty: all applicable ones. Correctness is always scored.",
    }),
    tasks: z
      .array(z.string().min(1))
      .min(1, "must not be empty; leave it out for all tasks")
      .optional()
      .meta({ description: "Uids of tasks of the suite. Absent: all." }),
    historical_replay_run_uid: z
      .string()
      .min(1)
      .optional()
      .meta({ description: "Scores the trials of this benchmark run of the suite again instead of running new ones." }),
    parallelism: z
      .int()
      .min(1)
      .max(100)
      .optional()
      .meta({ ...EXTENSION, description: "Maximum concurrent trials; default 4." }),
  })
  .meta({ id: "LaunchBenchmarkRequest" });

export const Launched = z.object({ uid: z.string(), state: BenchmarkRunState });

/** Results of one configuration of a benchmark run so far. */
const ConfigurationStats = z
  .looseObject({
    uid: z.string(),
    id: z.int(),
    role: z.enum(["baseline", "candidate"]),
    display_name: z.string(),
    trial_count: z.int(),
    pass_count: z.int(),
    fail_count: z.int(),
    pass_rate: z.number().nullable(),
    avg_total_credits_per_trial: z.string().nullable(),
    avg_wall_time_s: z.number().nullable(),
    harness: z.string().optional(),
    model: z.string().optional(),
    runner_id: z.string().optional(),
  })
  .meta({ id: "BenchmarkConfigurationStats" });

/** A benchmark run. `manifest` and `manifest_hash` are Millwright extensions. */
export const BenchmarkRun = z
  .object({
    uid: z.string(),
    factory_uid: z.string(),
    suite_uid: z.string(),
    suite_name: z.string(),
    suite_version: z.int(),
    state: BenchmarkRunState,
    created_at: timestamp(),
    updated_at: timestamp(),
    started_at: timestamp().nullable(),
    completed_at: timestamp().nullable(),
    agent_uid: z.string().optional(),
    agent_name: z.string().optional(),
    repetition_count: z.int(),
    elapsed_s: z.number().nullable(),
    trial_count: z.int().nullable(),
    task_count: z.int().nullable(),
    scorer_count: z.int().nullable(),
    total_credits: z.string().nullable(),
    cost_usd: z.number().nullable(),
    configuration_stats: z.array(ConfigurationStats).nullable().meta({ description: "null until a trial exists." }),
    trial_progress: TrialProgress.optional(),
    score_progress: ScoreProgress.optional(),
    manifest_hash: z.string().meta({ ...EXTENSION, description: "SHA-256 of the settings frozen at launch." }),
    historical_replay_run_uid: z.string().optional(),
    creator: UserProfile.optional().meta({ description: "With include `creator`." }),
    configurations: z.array(Configuration).optional().meta({
      description: "With include `launch_settings`, as frozen at launch; so are scorer_selection, tasks and manifest.",
    }),
    scorer_selection: z.array(ScorerId).optional(),
    tasks: z.array(SuiteTask).optional(),
    manifest: z
      .looseObject({})
      .optional()
      .meta({
        ...EXTENSION,
        description: "`content`, which the hash is computed from, and `identifiers` of the source records.",
      }),
    results: BenchmarkResults.optional().meta({ description: "With include `results`." }),
  })
  .meta({ id: "BenchmarkRun" });
