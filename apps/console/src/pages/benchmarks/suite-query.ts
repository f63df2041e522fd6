import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";

/** A suite with its configurations and tasks. */
export const suiteQuery = (factoryUid: string, suiteUid: string) =>
  queryOptions({
    queryKey: ["benchmarks", factoryUid, suiteUid, "suite"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{factory_uid}/benchmarks/{suite_uid}", {
          params: { path: { factory_uid: factoryUid, suite_uid: suiteUid } },
          signal,
        }),
      ),
  });
