import type { z } from "zod";
import type { scoring } from "@millwright/contracts";
import { omitUndefined, type JsonObject } from "@millwright/json";
import type { BenchmarkRun } from "./benchmark-run-schemas.ts";
import { isoTime } from "../formats/json-values.ts";
import type { Profile } from "../identity/profiles.ts";

type RunJson = z.input<typeof BenchmarkRun>;

/** Members that are null until the benchmark run has a trial. */
const NO_TRIAL_YET = {
  elapsed_s: null,
  trial_count: null,
  task_count: null,
  scorer_count: null,
  total_credits: null,
  cost_usd: null,
  configuration_stats: null,
};

/** Returns the public record of a benchmark run. Members that `include` did not request are omitted. */
export const benchmarkRunRecord = (run: scoring.BenchmarkRun, creators: ReadonlyMap<string, Profile>): RunJson => ({
  ...NO_TRIAL_YET,
  ...(run.progress as Partial<RunJson> | undefined),
  uid: run.uid,
  factory_uid: run.factoryUid,
  suite_uid: run.suiteUid,
  suite_name: run.suiteName,
  suite_version: run.suiteVersion,
  state: run.state as RunJson["state"],
  created_at: isoTime(run.createdAt!),
  updated_at: isoTime(run.updatedAt!),
  started_at: run.startedAt ? isoTime(run.startedAt) : null,
  completed_at: run.completedAt ? isoTime(run.completedAt) : null,
  repetition_count: run.repetitionCount,
  manifest_hash: run.manifestHash,
  ...omitUndefined({
    agent_uid: run.agentUid || undefined,
    agent_name: run.agentName || undefined,
    historical_replay_run_uid: run.historicalReplayRunUid,
    creator: creators.get(run.creatorUid),
    results: run.results as unknown as RunJson["results"],
  }),
  ...(run.manifest && launchSettings(run.manifest)),
});

type Rows = readonly JsonObject[];

/**
 * Returns the settings frozen at launch in the shape of the suite's records. Each entry of the manifest's content is
 * merged with the identifiers at the same index.
 */
function launchSettings(
  manifest: JsonObject,
): Pick<RunJson, "configurations" | "scorer_selection" | "tasks" | "manifest"> {
  const { content, identifiers } = manifest as unknown as {
    content: Record<string, Rows>;
    identifiers: Record<string, Rows>;
  };
  const rows = (source: Record<string, Rows>, name: string): Rows => source[name] ?? [];
  const agents = rows(identifiers, "agents");
  const configurations = rows(content, "configurations").map(
    ({ runner: _runner, agent_configs: overrides, ...frozen }, index) => {
      const { uid, id, runner_uid: runnerUid } = rows(identifiers, "configurations")[index] ?? {};
      const agentConfigs = ((overrides ?? []) as Rows).map((override, agent) => ({
        agent_uid: agents[agent]?.["uid"],
        ...override,
      }));
      const { harness, model, ...named } = frozen;
      return {
        uid,
        id,
        ...named,
        agent_configs: agentConfigs,
        ...omitUndefined({
          harness: harness || undefined,
          model: model || undefined,
          runner_id: runnerUid || undefined,
        }),
      };
    },
  );
  const tasks = rows(content, "tasks").map(({ repositories, ...frozen }, index) => {
    const { uid, id, source_run_uid: sourceRunUid = null } = rows(identifiers, "tasks")[index] ?? {};
    const refs = ((repositories ?? []) as Rows).map(({ commit, ...repository }) => ({ ...repository, ref: commit }));
    return { uid, id, ...frozen, source_run_id: sourceRunUid, starting_repo_refs: refs };
  });
  const selection = (identifiers["scorer_selection"] ?? []) as unknown as string[];
  return {
    manifest,
    configurations: configurations as unknown as NonNullable<RunJson["configurations"]>,
    scorer_selection: selection.map((id) => (/^\d{1,15}$/.test(id) ? Number(id) : id)),
    tasks: tasks as unknown as NonNullable<RunJson["tasks"]>,
  };
}
