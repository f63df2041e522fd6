import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";

export const runQuery = (runId: string) =>
  queryOptions({
    queryKey: ["run", runId],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/runs/{runId}", { params: { path: { runId } }, signal })),
  });
