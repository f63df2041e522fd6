import { z } from "zod";

export const BenchmarkRunState = z
  .enum(["pending", "running", "scoring", "completed", "failed", "cancelled"])
  .meta({ id: "BenchmarkRunState" });

export const TrialProgress = z
  .looseObject({
    total: z.int(),
    pending: z.int(),
    running: z.int(),
    succeeded: z.int(),
    failed: z.int(),
    cancelled: z.int(),
    completed: z.int(),
  })
  .meta({
    id: "BenchmarkTrialProgress",
    description: "Retries count as part of their trial. completed = succeeded + failed + cancelled.",
  });

export const ScoreProgress = z
  .looseObject({
    awaiting_trial: z.int(),
    pending: z.int(),
    judging: z.int(),
    scored: z.int(),
    finished_unscored: z.int(),
    not_scoreable: z.int(),
    received: z.int(),
    expected: z.int(),
  })
  .meta({
    id: "BenchmarkScoreProgress",
    description: "received = scored; expected = pending + judging + scored + finished_unscored.",
  });
