import type { ApiClient } from "@millwright/api-client";
import type { Trial } from "./verify.ts";

/** Returns links to a trial that failed, and to a trial of the same task that passed. */
export async function linksOf(api: ApiClient, trials: readonly Trial[]): Promise<[name: string, url: string][]> {
  const failed = trials.find((trial) => outcomeOf(trial) === "fail");
  const passed = trials.find((trial) => outcomeOf(trial) === "pass" && trial.task_title === failed?.task_title);
  const named = [
    ["a trial that failed", failed],
    ["the same task, passed", passed],
  ] as const;
  const links = named.map(async ([name, trial]): Promise<[string, string][]> =>
    trial ? [[name, (await api.get<{ session_link: string }>(`/agent/runs/${trial.run_id}`)).session_link]] : [],
  );
  return (await Promise.all(links)).flat();
}

const outcomeOf = ({ scores }: Trial): string | null | undefined => scores[0]?.outcome;
