import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";

type BenchmarkRun = components["schemas"]["BenchmarkRun"];
export type RunPath = { readonly factory_uid: string; readonly suite_uid: string; readonly run_uid: string };

/** A benchmark run with the settings that were frozen at its launch. */
export const launchSettingsQuery = (path: RunPath) =>
  queryOptions({
    queryKey: ["runs", "benchmark", path.suite_uid, path.run_uid, "settings"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}/runs/{run_uid}", {
          params: { path, query: { include: ["launch_settings"] } },
          signal,
        }),
      ),
    staleTime: Infinity,
  });

/** The members of a manifest that name runners. Both lists have the same order. */
type RunnerManifest = {
  readonly content: { readonly configurations: readonly { readonly runner: string }[] };
  readonly identifiers: { readonly configurations: readonly { readonly runner_uid: string }[] };
};

/** Returns the names of the configurations' runners by uid. Only the manifest of a benchmark run has them. */
export function runnerNamesOf(run: BenchmarkRun | undefined): ReadonlyMap<string, string> {
  if (!run?.manifest) return new Map();
  const { content, identifiers } = run.manifest as RunnerManifest;
  return new Map(
    identifiers.configurations.map(({ runner_uid: uid }, index) => [uid, content.configurations[index]!.runner]),
  );
}
