import { useQueries, useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client.ts";
import { factoriesQuery } from "../api/queries.ts";

export type PaletteGroup = {
  readonly heading: string;
  readonly items: readonly {
    readonly id: string;
    readonly label: string;
    readonly detail?: string;
    readonly to: string;
  }[];
};

/** Automations and tasks are listed by factory; those of the first factories are found. */
const FACTORIES_MAX = 20;
const AUTOMATIONS_MAX = 100;
const TASKS_MAX = 5;
const FRESH_MS = 60_000;
const QUERY_MIN = 2;

/** Returns what the palette finds beside pages and runs. Names are filtered by the palette, tasks by the API. */
export function usePaletteItems(query: string): readonly PaletteGroup[] {
  const isSearching = query.length >= QUERY_MIN;
  const { data: factoryList } = useQuery({ ...factoriesQuery, staleTime: FRESH_MS });
  const factories = factoryList?.factories ?? [];
  const { data: agents } = useQuery({
    queryKey: ["identities", "choices"],
    enabled: isSearching,
    staleTime: FRESH_MS,
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/identities", { signal })),
  });
  const { data: schedules } = useQuery({
    queryKey: ["schedules"],
    enabled: isSearching,
    staleTime: FRESH_MS,
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/schedules", { signal })),
  });
  const { data: environments } = useQuery({
    queryKey: ["environments", "palette"],
    enabled: isSearching,
    staleTime: FRESH_MS,
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/agent/environments", { signal })),
  });
  const automations = useQueries({
    queries: factories.slice(0, FACTORIES_MAX).map(({ uid }) => ({
      queryKey: ["factories", uid, "automation-choices"],
      enabled: isSearching,
      staleTime: FRESH_MS,
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        dataOf(
          api.GET("/api/v1/factory/{uid}/automations", {
            params: { path: { uid }, query: { limit: AUTOMATIONS_MAX } },
            signal,
          }),
        ),
    })),
    combine: (results) => results.flatMap(({ data }) => data?.automations ?? []),
  });
  const tasks = useQueries({
    queries: factories.slice(0, FACTORIES_MAX).map(({ uid }) => ({
      queryKey: ["tasks", uid, "palette", query],
      enabled: isSearching,
      queryFn: ({ signal }: { signal: AbortSignal }) =>
        dataOf(
          api.GET("/api/v1/factory/{uid}/tasks", {
            params: { path: { uid }, query: { q: query, limit: TASKS_MAX, include_current_run: true } },
            signal,
          }),
        ),
    })),
    combine: (results) => results.flatMap(({ data }) => data?.tasks ?? []),
  });
  const nameOf = (factoryUid: string | null | undefined): string | undefined =>
    factories.find(({ uid }) => uid === factoryUid)?.name;
  return [
    {
      heading: "Factories",
      items: factories.map(({ uid, name }) => ({ id: uid, label: name, to: `/factories/${uid}` })),
    },
    {
      heading: "Agents",
      items: (agents?.agents ?? []).flatMap(({ uid, name, factory_uid: factory }) =>
        factory ? [{ id: uid, label: name, detail: nameOf(factory), to: `/factories/${factory}/agents` }] : [],
      ),
    },
    {
      heading: "Automations",
      items: automations.map(({ uid, name, factory_uid: factory }) => ({
        id: uid,
        label: name,
        detail: nameOf(factory),
        to: `/factories/${factory}/automations/${uid}`,
      })),
    },
    {
      heading: "Schedules",
      items: (schedules?.schedules ?? []).map(({ id, name }) => ({ id, label: name, to: `/schedules/${id}` })),
    },
    {
      heading: "Tasks",
      items: tasks.map(({ uid, title, run_id: runId, current_run: run, factory_uid: factory }) => ({
        id: uid,
        label: title,
        detail: nameOf(factory),
        to: `/runs/${run?.run_id ?? runId}`,
      })),
    },
    {
      heading: "Environments",
      items: (environments?.environments ?? []).map(({ uid, config: { name } }) => ({
        id: uid,
        label: name ?? uid,
        to: `/environments/${uid}`,
      })),
    },
  ];
}
