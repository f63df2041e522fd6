import { z } from "zod";
import { EXTENSION, timestamp } from "../../rest/index.ts";
import { Difference, Scoring } from "./benchmark-result-schemas.ts";
import { BenchmarkRunState } from "./benchmark-state-schemas.ts";

const ComparedRun = z.looseObject({
  uid: z.string(),
  state: BenchmarkRunState,
  suite_version: z.int(),
  manifest_hash: z.string(),
  created_at: timestamp(),
});

/** A comparison of two benchmark runs of a suite. Millwright extension. */
export const Comparison = z
  .looseObject({
    run: ComparedRun,
    other_run: ComparedRun,
    same_manifest: z.boolean(),
    shared_tasks: z.array(z.string()).meta({ description: "Titles." }),
    changed_tasks: z.array(z.string()).meta({ description: "Shared titles with other content." }),
    tasks_only_in_run: z.array(z.string()),
    tasks_only_in_other_run: z.array(z.string()),
    configurations: z.array(
      z.looseObject({
        role: z.string(),
        display_name: z.string(),
        configuration_uid: z.string(),
        other_configuration_uid: z.string(),
        run: Scoring,
        other_run: Scoring,
        difference: Difference,
        distinguishable: z.boolean(),
        verdict: z.enum(["better", "worse", "not distinguishable"]),
      }),
    ),
    unmatched_configurations: z.array(z.string()),
  })
  .meta({
    id: "BenchmarkComparison",
    ...EXTENSION,
    description: "Compares two benchmark runs of a suite over the tasks that both have.",
  });
