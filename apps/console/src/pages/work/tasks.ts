import { infiniteQueryOptions, useMutation, useQueryClient } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";
import { stageLabel, type Stage } from "../../ui/task-stages.ts";
import { useToasts } from "../../ui/toasts.tsx";

export type Task = components["schemas"]["FactoryTask"];

const PAGE_SIZE = 30;

/** The tasks of one stage, latest change first, page by page. */
export const tasksQuery = (factoryUid: string, stage: Stage, q: string | undefined) =>
  infiniteQueryOptions({
    queryKey: ["tasks", factoryUid, stage, q ?? ""],
    queryFn: ({ pageParam, signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/tasks", {
          params: {
            path: { uid: factoryUid },
            query: {
              stage: [stage],
              include_current_run: true,
              limit: PAGE_SIZE,
              ...(q === undefined ? {} : { q }),
              ...(pageParam === undefined ? {} : { cursor: pageParam }),
            },
          },
          signal,
        }),
      ),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: ({ page_info: info }) => info.next_cursor,
  });

/** Returns a mutation that moves a task to a stage. */
export function useMoveTask(factoryUid: string) {
  const queries = useQueryClient();
  const toasts = useToasts();
  return useMutation({
    mutationFn: ({ task, stage }: { task: Pick<Task, "uid" | "title">; stage: Stage }) =>
      dataOf(
        api.PATCH("/api/v1/factory/{uid}/tasks/{task_uid}", {
          params: { path: { uid: factoryUid, task_uid: task.uid } },
          body: { stage },
        }),
      ),
    onSuccess: ({ title, stage }) => toasts.success(`“${title}” is in ${stageLabel(stage)}.`),
    onError: (error: unknown) => toasts.failure(error),
    onSettled: () => queries.invalidateQueries({ queryKey: ["tasks", factoryUid] }),
  });
}
