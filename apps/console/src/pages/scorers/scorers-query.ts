import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";

/** The scorers of a factory, by name, also those that benchmarks manage. */
export const scorersQuery = (factoryUid: string) =>
  queryOptions({
    queryKey: ["scorers", factoryUid],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/scorers", {
          params: { path: { uid: factoryUid }, query: { include_managed: true } },
          signal,
        }),
      ),
  });
