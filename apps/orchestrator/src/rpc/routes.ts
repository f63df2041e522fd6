import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { events, orchestrator } from "@millwright/contracts";
import { serveEventFeed, type EventLog } from "@millwright/events";
import { allowServices } from "@millwright/rpc";
import { localRunMethods, type LocalRunRoutesDeps } from "./local-run-routes.ts";
import { runAllowList, runMethods, type RunRoutesDeps } from "./run-routes.ts";

type RunService = ServiceImpl<typeof orchestrator.RunService>;
type Views = Omit<RunService, keyof ReturnType<typeof runMethods> | keyof ReturnType<typeof localRunMethods>>;

export type RoutesDeps = {
  readonly runs: RunRoutesDeps & LocalRunRoutesDeps;
  readonly runViewMethods: Views;
  /** ArtifactService, CatalogService, DefinitionOwnerService, EvidenceService, FactsService. */
  readonly catalogRoutes: (router: ConnectRouter) => void;
  readonly eventLog: EventLog;
};

/** THE DOOR for other services: every RPC and what serves it. Workers have their own (worker-routes.ts). */
export function routes(router: ConnectRouter, { runs, runViewMethods, catalogRoutes, eventLog }: RoutesDeps): void {
  router.service(orchestrator.RunService, { ...runViewMethods, ...runMethods(runs), ...localRunMethods(runs) });
  catalogRoutes(router);
  router.service(events.EventFeedService, serveEventFeed(eventLog));
}

/** Which services may call the methods composed here in their own name. */
export const ALLOWED_SERVICES: Readonly<Record<string, readonly string[]>> = {
  ...runAllowList,
  ...allowServices(events.EventFeedService, { read: ["gateway", "factories", "scheduler", "scoring", "metrics"] }),
};
