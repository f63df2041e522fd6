import type { ConnectRouter, ServiceImpl } from "@connectrpc/connect";
import { events, orchestrator } from "@millwright/contracts";
import { serveEventFeed, type EventLog } from "@millwright/events";
import { allowServices } from "@millwright/rpc";
import { localRunMethods, type LocalRunRoutesDeps } from "../runs/rpc/local-run-routes.ts";
import { runAllowList, runMethods, type RunRoutesDeps } from "../runs/rpc/run-routes.ts";

type RunService = ServiceImpl<typeof orchestrator.RunService>;
type Views = Omit<RunService, keyof ReturnType<typeof runMethods> | keyof ReturnType<typeof localRunMethods>>;

export type RoutesDeps = {
  readonly runs: RunRoutesDeps & LocalRunRoutesDeps;
  readonly runViewMethods: Views;
  /** Registers the services of compose-catalog.ts. */
  readonly catalogRoutes: (router: ConnectRouter) => void;
  readonly eventLog: EventLog;
};

/** Registers the RPC services that other services call. Workers call WorkerService (worker-routes.ts). */
export function routes(router: ConnectRouter, { runs, runViewMethods, catalogRoutes, eventLog }: RoutesDeps): void {
  router.service(orchestrator.RunService, { ...runViewMethods, ...runMethods(runs), ...localRunMethods(runs) });
  catalogRoutes(router);
  router.service(events.EventFeedService, serveEventFeed(eventLog));
}

/** The services that may call the methods registered here in their own name, by method. */
export const ALLOWED_SERVICES: Readonly<Record<string, readonly string[]>> = {
  ...runAllowList,
  ...allowServices(events.EventFeedService, { read: ["gateway", "factories", "scheduler", "scoring", "metrics"] }),
};
