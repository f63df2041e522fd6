import { useQuery } from "@tanstack/react-query";
import { activeTeam } from "./active-team.ts";
import { api, dataOf } from "./client.ts";
import { listRuns } from "./queries.ts";
import type { components } from "../gen/api.ts";

export type WaitingTask = components["schemas"]["FactoryTask"];

const REFRESH_MS = 30_000;
export const WAITING_MAX = 50;

/** What waits for people: blocked runs, tasks in review, and schedules whose last run did not start. */
export function useWaiting() {
  const blocked = useQuery({
    queryKey: ["runs", "waiting"],
    queryFn: async ({ signal }) => (await listRuns({ state: ["BLOCKED"], limit: WAITING_MAX }, signal)).runs,
    refetchInterval: REFRESH_MS,
  });
  const reviews = useQuery({
    queryKey: ["tasks", "waiting"],
    queryFn: ({ signal }) => tasksInReview(signal),
    refetchInterval: REFRESH_MS,
  });
  const schedules = useQuery({
    queryKey: ["waiting", "schedules"],
    queryFn: async ({ signal }) =>
      (await dataOf(api.GET("/api/v1/agent/schedules", { signal }))).schedules.filter(
        ({ enabled, last_spawn_error: error }) => enabled && error !== undefined && error !== null,
      ),
    refetchInterval: REFRESH_MS,
  });
  return {
    blocked,
    reviews,
    schedules,
    count: (blocked.data?.length ?? 0) + (reviews.data?.length ?? 0) + (schedules.data?.length ?? 0),
  };
}

async function tasksInReview(signal: AbortSignal): Promise<WaitingTask[]> {
  const uid = activeTeam.get();
  if (uid === undefined) return [];
  const query = { stage: "REVIEW" as const, include_current_run: true, limit: WAITING_MAX };
  return (await dataOf(api.GET("/api/v1/team/{uid}/tasks", { params: { path: { uid }, query }, signal }))).tasks;
}
