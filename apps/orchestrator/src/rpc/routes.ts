import type { ConnectRouter } from "@connectrpc/connect";
import { events, orchestrator, worker } from "@millwright/contracts";
import { serveEventFeed, type EventLog } from "@millwright/events";
import { allowServices } from "@millwright/rpc";
import { artifactRoutes, type ArtifactRoutesDeps } from "../artifacts/rpc/artifact-routes.ts";
import { workerArtifactMethods, type WorkerArtifactDeps } from "../artifacts/rpc/worker-artifact-routes.ts";
import { budgetRoutes } from "../budgets/rpc/budget-routes.ts";
import type { BudgetsDeps } from "../budgets/usecases/budgets.ts";
import { catalogRoutes, type CatalogRoutesDeps } from "../catalog/rpc/catalog-routes.ts";
import { definitionAllowList, definitionRoutes, type DefinitionRoutesDeps } from "../catalog/rpc/definition-routes.ts";
import { modelPriceRoutes } from "../catalog/rpc/model-price-routes.ts";
import type { ModelPricesDeps } from "../catalog/usecases/model-prices.ts";
import {
  conversationAllowList,
  conversationMethods,
  type ConversationRoutesDeps,
} from "../conversations/rpc/conversation-routes.ts";
import { conversationViewMethods, type ConversationViewDeps } from "../conversations/rpc/conversation-view-routes.ts";
import { evidenceAllowList, evidenceRoutes, type EvidenceRoutesDeps } from "../evidence/rpc/evidence-routes.ts";
import { factsAllowList, factsRoutes, type FactsRoutesDeps } from "../facts/rpc/facts-routes.ts";
import { leaseAllowList, leaseRoutes, type LeaseRoutesDeps } from "../leases/rpc/lease-routes.ts";
import { localRunRoutes, type LocalRunRoutesDeps } from "../leases/rpc/local-run-routes.ts";
import { workerMethods, type WorkerMethodsDeps } from "../leases/rpc/worker-routes.ts";
import { runEventAllowList, runEventRoutes, type RunEventRoutesDeps } from "../runs/rpc/run-event-routes.ts";
import { runAllowList, runMethods, type RunRoutesDeps } from "../runs/rpc/run-routes.ts";
import { runViewMethods, type RunViewDeps } from "../runs/rpc/run-view-routes.ts";

export type RoutesDeps = RunRoutesDeps &
  RunViewDeps &
  RunEventRoutesDeps &
  ConversationRoutesDeps &
  ConversationViewDeps &
  LocalRunRoutesDeps &
  LeaseRoutesDeps &
  ArtifactRoutesDeps &
  BudgetsDeps &
  CatalogRoutesDeps &
  DefinitionRoutesDeps &
  EvidenceRoutesDeps &
  FactsRoutesDeps &
  ModelPricesDeps & { readonly eventLog: EventLog };

/** Registers the RPC services that other services call. */
export function routes(router: ConnectRouter, deps: RoutesDeps): void {
  router.service(orchestrator.RunService, { ...runViewMethods(deps), ...runMethods(deps) });
  router.service(orchestrator.ConversationService, { ...conversationViewMethods(deps), ...conversationMethods(deps) });
  router.service(events.EventFeedService, serveEventFeed(deps.eventLog));
  localRunRoutes(router, deps);
  leaseRoutes(router, deps);
  runEventRoutes(router, deps);
  budgetRoutes(router, deps);
  modelPriceRoutes(router, deps);
  factsRoutes(router, deps);
  evidenceRoutes(router, deps);
  artifactRoutes(router, deps);
  catalogRoutes(router, deps);
  definitionRoutes(router, deps);
}

/** Registers WorkerService, which workers call. */
export function workerRoutes(router: ConnectRouter, deps: WorkerMethodsDeps & WorkerArtifactDeps): void {
  router.service(worker.WorkerService, { ...workerMethods(deps), ...workerArtifactMethods(deps) });
}

/** The services that may call the methods registered here in their own name, by method. */
export const ALLOWED_SERVICES: Readonly<Record<string, readonly string[]>> = {
  ...runAllowList,
  ...runEventAllowList,
  ...conversationAllowList,
  ...leaseAllowList,
  ...definitionAllowList,
  ...evidenceAllowList,
  ...factsAllowList,
  ...allowServices(orchestrator.ArtifactService, { getArtifact: ["gateway"], getPullRequest: ["gateway"] }),
  ...allowServices(orchestrator.CatalogService, {
    listModels: ["factories", "gateway", "scoring"],
    listWorkers: ["factories"],
    describePullRequests: ["factories"],
    readCodeHost: ["metrics"],
  }),
  ...allowServices(events.EventFeedService, { read: ["gateway", "factories", "scheduler", "scoring", "metrics"] }),
};
