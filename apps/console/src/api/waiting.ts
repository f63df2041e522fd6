import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "./client.ts";
import type { components } from "../gen/api.ts";

export type WaitingTask = components["schemas"]["FactoryTask"] & { readonly factoryName: string };

const REFRESH_MS = 30_000;
export const WAITING_MAX = 50;
/** Factories whose tasks are read, because the API lists tasks by factory. */
const FACTORIES_MAX = 20;

/** What waits for people: blocked runs, tasks in review, and schedules whose last run did not start. */
export function useWaiting() {
  const blocked = useQuery({
    queryKey: ["runs", "waiting"],
    queryFn: async ({ signal }) =>
      (
        await dataOf(
          api.GET("/api/v1/agent/runs", { params: { query: { state: ["BLOCKED"], limit: WAITING_MAX } }, signal }),
        )
      ).runs,
    refetchInterval: REFRESH_MS,
  });
  const reviews = useQuery({
    queryKey: ["waiting", "tasks"],
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
  const { factories } = await dataOf(
    api.GET("/api/v1/factory", { params: { query: { limit: FACTORIES_MAX } }, signal }),
  );
  const lists = await Promise.all(
    factories.map(async ({ uid, name }) => {
      const query = { stage: ["REVIEW" as const], include_current_run: true, limit: WAITING_MAX };
      const { tasks } = await dataOf(
        api.GET("/api/v1/factory/{uid}/tasks", { params: { path: { uid }, query }, signal }),
      );
      return tasks.map((task) => ({ ...task, factoryName: name }));
    }),
  );
  return lists.flat().sort((left, right) => right.updated_at.localeCompare(left.updated_at));
}
