import { QueryClient, queryOptions } from "@tanstack/react-query";
import { api, dataOf, readSignInOptions } from "./client.ts";
import { ApiError } from "./problem.ts";
import type { paths } from "../gen/api.ts";

const RETRIES_MAX = 3;
const FACTORIES_MAX = 100;

/** Creates the query cache. Requests are retried only if the platform was unreachable or failed. */
export function createQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 5_000,
        retry: (failures, error) =>
          failures < RETRIES_MAX && error instanceof ApiError && (error.status === 0 || error.status >= 500),
      },
    },
  });
  // a credential that was revoked while a page is open: read it again, which shows the sign-in page
  client.getQueryCache().subscribe(({ query, type }) => {
    const { error } = query.state;
    if (type === "updated" && error instanceof ApiError && error.status === 401 && query.queryKey[0] !== "whoami")
      void client.invalidateQueries({ queryKey: ["whoami"] });
  });
  return client;
}

/** The signed-in principal with its teams and permissions. */
export const whoAmI = queryOptions({
  queryKey: ["whoami"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/whoami", { signal })),
  staleTime: 60_000,
});

/** The ways to sign in besides API keys. */
export const signInOptions = queryOptions({
  queryKey: ["sign-in options"],
  queryFn: ({ signal }) => readSignInOptions(signal),
  staleTime: Infinity,
});

/** The models that runs can use. */
export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/models", { signal })),
});

type RunsQuery = paths["/api/v1/agent/runs"]["get"]["parameters"]["query"];

/** Returns a page of the runs that the caller may view. */
export const listRuns = (query: RunsQuery, signal: AbortSignal) =>
  dataOf(api.GET("/api/v1/agent/runs", { params: { query }, signal }));

/** The factories of the active team, by name. */
export const factoriesQuery = queryOptions({
  queryKey: ["factories", "choices"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/factory", { params: { query: { limit: FACTORIES_MAX } }, signal })),
});

/** The agents of a factory. */
export const agentsQuery = (factoryUid: string) =>
  queryOptions({
    queryKey: ["factories", factoryUid, "agents"],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/agent/identities", { params: { query: { factory_uid: factoryUid } }, signal })),
  });
