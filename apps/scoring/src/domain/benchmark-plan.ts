import type { JsonObject } from "@millwright/json";
import { omitUndefined } from "@millwright/json";
import type { Manifest } from "./manifest.ts";

export type PlanTask = {
  readonly uid: string;
  readonly id: number;
  readonly title: string;
  readonly tags: readonly string[];
};
export type PlanScorer = {
  readonly uid: string;
  readonly id: number;
  readonly name: string;
  readonly kind: string;
  readonly version: number;
  readonly threshold: number;
};
export type PlanConfiguration = {
  readonly uid: string;
  readonly id: number;
  readonly role: "baseline" | "candidate";
  readonly displayName: string;
  readonly publicRecord: JsonObject;
};

/** The tasks, configurations and scorers that results are computed for, in the order of the manifest. */
export type BenchmarkPlan = {
  readonly tasks: readonly PlanTask[];
  readonly configurations: readonly PlanConfiguration[];
  readonly scorers: readonly PlanScorer[];
  /** The scorer that decides whether a trial passes; undefined if the benchmark run has none. */
  readonly correctness: PlanScorer | undefined;
};

/** Returns the tasks, configurations and scorers of a benchmark run as they were frozen at its launch. */
export function planOf({ content, identifiers }: Manifest): BenchmarkPlan {
  const scorers = content.scorers.map(({ name, kind, threshold }, i) => ({
    name,
    kind,
    threshold,
    ...identifiers.scorers[i]!,
  }));
  return {
    tasks: content.tasks.map(({ title, tags }, i) => ({
      uid: identifiers.tasks[i]!.uid,
      id: identifiers.tasks[i]!.id,
      title,
      tags,
    })),
    configurations: content.configurations.map((configuration, i) => {
      const { uid, id, runner_uid: runnerUid } = identifiers.configurations[i]!;
      const { role, display_name: displayName, harness, model } = configuration;
      const publicRecord = omitUndefined({
        uid,
        id,
        role,
        display_name: displayName,
        harness: harness || undefined,
        model: model || undefined,
        runner_id: runnerUid || undefined,
        harness_auth_secret_name: configuration.harness_auth_secret_name ?? undefined,
        agent_configs: configuration.agent_configs.map((override, n) =>
          omitUndefined({
            agent_uid: identifiers.agents[n]?.uid,
            agent_name: override.agent_name,
            harness: override.harness,
            model: override.model,
            harness_auth_secret_name: override.harness_auth_secret_name ?? undefined,
          }),
        ),
      });
      return { uid, id, role, displayName, publicRecord };
    }),
    scorers,
    correctness: scorers.find(({ kind }) => kind === "benchmark_task_correctness"),
  };
}

/** Returns the configuration that others are compared with, or undefined if the benchmark run has none. */
export const baselineOf = ({ configurations }: BenchmarkPlan): PlanConfiguration | undefined =>
  configurations.find(({ role }) => role === "baseline");
