import { ApiError, type ApiClient } from "@millwright/api-client";
import type { DemoRepositories } from "./repositories.ts";
import { until } from "./live-view.ts";

export type Artifact = { artifact_type: string; data: Record<string, unknown> };
export type DemoRun = {
  run_id: string;
  state: string;
  status_message?: { message?: string };
  title: string;
  run_time?: string;
  session_link?: string;
  parent_run_id?: string;
  executor?: { display_name?: string };
  artifacts?: Artifact[];
  request_usage?: { inference_cost_usd?: number; total_tokens?: number };
};
export type Task = { uid: string; title: string; stage: string; run_id: string; outputs: Artifact[] };

/** Creates and applies the demo's factory through the public REST API only, as a new user would. */
export async function prepareFactory(
  api: ApiClient,
  world: DemoRepositories,
): Promise<{ factoryUid: string; plan: string[] }> {
  const { teams } = await api.get<{ teams: { uid: string }[] }>("/whoami");
  await api.post(`/team/${teams[0]!.uid}/code-hosts`, { name: "local", kind: "local", root: world.codeRoot });
  const factory = await api.post<{ uid: string }>("/factory", { name: "Demo" });
  await api.request("PUT", `/factory/${factory.uid}/source`, {
    body: { repository_url: world.definitionRepository, branch: "main" },
  });
  const { plan } = await api.post<{ plan: { action: string; kind: string; name: string }[] }>(
    `/factory/${factory.uid}/source/apply`,
  );
  return { factoryUid: factory.uid, plan: plan.map((item) => `${item.action} ${item.kind} ${item.name}`) };
}

/** Returns the task that the platform creates from the dispatched run, once it exists. */
export const taskOfRun = (api: ApiClient, factoryUid: string, runId: string): Promise<Task> =>
  until(
    () => api.get<Task>(`/factory/${factoryUid}/task-by-run`, { run_id: runId }).catch(absentIsUndefined),
    "The task",
  );

/** Returns the root run and all its descendants, oldest first. */
export async function runTree(api: ApiClient, rootRunId: string): Promise<DemoRun[]> {
  const { runs } = await api.get<{ runs: DemoRun[] }>("/agent/runs", {
    ancestor_run_id: rootRunId,
    sort_by: "created_at",
    sort_order: "asc",
  });
  return [await api.get<DemoRun>(`/agent/runs/${rootRunId}`), ...runs];
}

function absentIsUndefined(error: unknown): undefined {
  if (error instanceof ApiError && error.status === 404) return undefined;
  throw error;
}
