import { z } from "zod";
import { timestamp } from "../../rest/index.ts";

export const TrialInclude = z.enum(["scores", "metrics", "execution_history", "results", "details"]);

export const Trial = z
  .looseObject({
    uid: z.string(),
    id: z.int().optional(),
    configuration_uid: z.string(),
    task_uid: z.string().optional(),
    task_title: z.string(),
    rep_index: z.int().meta({ description: "From 0." }),
    state: z.enum(["pending", "running", "succeeded", "failed", "cancelled"]),
    run_id: z.string().nullable(),
    attempt_count: z.int().meta({ description: "1: no retry." }),
    matched_attempt_number: z.int().optional().meta({ description: "With agent_run_id." }),
    terminal_reason: z.enum(["timeout", "failure"]).optional(),
    created_at: timestamp(),
    started_at: timestamp().nullable().optional(),
    completed_at: timestamp().nullable().optional(),
    scores: z.array(z.looseObject({ scorer_uid: z.string(), status: z.string() })).optional(),
    metrics: z.looseObject({}).nullable().optional(),
    attempts: z
      .array(z.looseObject({ attempt_number: z.int(), run_id: z.string().nullable(), state: z.string() }))
      .optional(),
    judge_runs: z.array(z.looseObject({})).optional(),
  })
  .meta({ id: "BenchmarkTrial" });
