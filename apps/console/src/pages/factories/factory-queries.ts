import { queryOptions } from "@tanstack/react-query";
import { api, dataOf } from "../../api/client.ts";
import type { components } from "../../gen/api.ts";

type Management = components["schemas"]["Factory"]["management"];

const MANAGEMENTS: Readonly<Record<Management, string>> = {
  live: "Console or API",
  service_files: "Files in the platform",
  external_files: "Files in a repository",
};
/** Returns what defines a factory. */
export const managementText = (management: Management): string => MANAGEMENTS[management];

const APPLYING_MS = 1_500;
const IDLE_MS = 15_000;
const AUTOMATIONS_MAX = 100;

export const factoryQuery = (uid: string) =>
  queryOptions({
    queryKey: ["factories", uid],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/factory/{uid}", { params: { path: { uid } }, signal })),
  });

/** The definition's source and state. Read again often while it is being applied. */
export const sourceQuery = (uid: string) =>
  queryOptions({
    queryKey: ["factories", uid, "source"],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/factory/{uid}/source", { params: { path: { uid } }, signal })),
    refetchInterval: ({ state: { data } }) => (data?.state === "APPLYING" ? APPLYING_MS : IDLE_MS),
  });

/** The first page of the automations, for choices. */
export const automationChoices = (uid: string) =>
  queryOptions({
    queryKey: ["factories", uid, "automation-choices"],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/automations", {
          params: { path: { uid }, query: { limit: AUTOMATIONS_MAX } },
          signal,
        }),
      ),
  });

export const webhooksQuery = (factoryUid: string) =>
  queryOptions({
    queryKey: ["factories", factoryUid, "webhooks"],
    queryFn: ({ signal }) =>
      dataOf(api.GET("/api/v1/factory/{uid}/webhooks", { params: { path: { uid: factoryUid } }, signal })),
  });

export const webhookQuery = (factoryUid: string, webhookUid: string) =>
  queryOptions({
    queryKey: ["factories", factoryUid, "webhooks", webhookUid],
    queryFn: ({ signal }) =>
      dataOf(
        api.GET("/api/v1/factory/{uid}/webhooks/{webhookUid}", {
          params: { path: { uid: factoryUid, webhookUid } },
          signal,
        }),
      ),
  });
