import type { ApiClient } from "@millwright/api-client";
import type { Results } from "@millwright/terminal";
import { must } from "../verify.ts";
import type { Executed } from "./execute.ts";
import { EXPECTED_PASSES } from "./suite.ts";

type Coverage = { readonly expected: number; readonly received: number; readonly rate: number | null };
export type Trial = {
  readonly task_title: string;
  readonly configuration_uid: string;
  readonly run_id: string;
  readonly state: string;
  readonly scores: { readonly outcome?: string | null; readonly reason?: string }[];
};
export type Verified = {
  readonly run: Executed["run"];
  readonly results: Results & { readonly coverage: Coverage };
  readonly trials: readonly Trial[];
};

/**
 * Reads the results and checks that they are complete and as expected. Throws an Error that states the first mismatch.
 */
export async function verifyBenchmark(api: ApiClient, { path, run }: Executed): Promise<Verified> {
  const results = await api.get<Verified["results"]>(`${path}/results`);
  const { data: trials } = await api.get<{ data: Trial[] }>(`${path}/trials`, { include: "scores", limit: 100 });
  must(run.state === "completed", `the benchmark run is ${run.state}: ${results.incomplete_reason ?? ""}`);
  must(
    results.coverage.rate === 1,
    `${results.coverage.received} of ${results.coverage.expected} outcomes were received`,
  );
  for (const trial of trials)
    must(trial.state === "succeeded", `the trial "${trial.task_title}" (run ${trial.run_id}) is ${trial.state}`);
  for (const { role, display_name: name, scoring } of results.configurations) {
    const expected = EXPECTED_PASSES[role as keyof typeof EXPECTED_PASSES];
    must(scoring.pass_count === expected, `"${name}" passed ${scoring.pass_count} trials instead of ${expected}`);
  }
  const candidate = results.configurations.find(({ role }) => role === "candidate");
  must(candidate?.scoring.difference_to_baseline?.verdict === "worse", "the worse configuration was not distinguished");
  return { run, results, trials };
}
