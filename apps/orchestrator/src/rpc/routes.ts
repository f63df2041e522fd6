import type { ConnectRouter } from "@connectrpc/connect";
import { events, orchestrator } from "@millwright/contracts";
import { serveEventFeed, type EventLog } from "@millwright/events";
import { allowServices } from "@millwright/rpc";
import {
  conversationAllowList,
  conversationMethods,
  type ConversationUseCases,
} from "../conversations/rpc/conversation-routes.ts";
import type { conversationViewMethods } from "../conversations/rpc/conversation-view-routes.ts";
import { leaseAllowList, leaseRoutes, type LeaseUseCases } from "../leases/rpc/lease-routes.ts";
import { localRunRoutes, type LocalRunRoutesDeps } from "../leases/rpc/local-run-routes.ts";
import { runEventAllowList } from "../runs/rpc/run-event-routes.ts";
import { runAllowList, runMethods, type RunRoutesDeps } from "../runs/rpc/run-routes.ts";
import type { runViewMethods } from "../runs/rpc/run-view-routes.ts";

export type RoutesDeps = {
  readonly runs: RunRoutesDeps & LocalRunRoutesDeps & LeaseUseCases & ConversationUseCases;
  readonly runViewMethods: ReturnType<typeof runViewMethods>;
  readonly conversationViewMethods: ReturnType<typeof conversationViewMethods>;
  /** Registers the services of compose-catalog.ts. */
  readonly catalogRoutes: (router: ConnectRouter) => void;
  readonly eventLog: EventLog;
};

/**
 * Registers the RPC services that other services call. Workers call WorkerService (leases/rpc/worker-routes.ts).
 */
export function routes(router: ConnectRouter, deps: RoutesDeps): void {
  const { runs } = deps;
  router.service(orchestrator.RunService, { ...deps.runViewMethods, ...runMethods(runs) });
  router.service(orchestrator.ConversationService, { ...deps.conversationViewMethods, ...conversationMethods(runs) });
  localRunRoutes(router, runs);
  leaseRoutes(router, runs);
  deps.catalogRoutes(router);
  router.service(events.EventFeedService, serveEventFeed(deps.eventLog));
}

/** The services that may call the methods registered here in their own name, by method. */
export const ALLOWED_SERVICES: Readonly<Record<string, readonly string[]>> = {
  ...runAllowList,
  ...runEventAllowList,
  ...conversationAllowList,
  ...leaseAllowList,
  ...allowServices(events.EventFeedService, { read: ["gateway", "factories", "scheduler", "scoring", "metrics"] }),
};
