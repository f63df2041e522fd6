import { createRoute, createRouter, redirect } from "@tanstack/react-router";
import { benchmarksRoutes } from "../pages/benchmarks/routes.ts";
import { budgetsRoutes } from "../pages/budgets/routes.ts";
import { factoriesRoutes } from "../pages/factories/routes.ts";
import { metricsRoutes } from "../pages/metrics/routes.ts";
import { platformRoutes } from "../pages/platform/routes.ts";
import { pullRequestsRoutes } from "../pages/pull-requests/routes.ts";
import { runRoutes } from "../pages/run/routes.ts";
import { runsRoutes } from "../pages/runs/routes.ts";
import { schedulesRoutes } from "../pages/schedules/routes.ts";
import { scorersRoutes } from "../pages/scorers/routes.ts";
import { teamRoutes } from "../pages/team/routes.ts";
import { waitingRoutes } from "../pages/waiting/routes.ts";
import { parseSearch, stringifySearch } from "../ui/search-params.ts";
import { ErrorView } from "../ui/error-view.tsx";
import { workRoutes } from "../pages/work/routes.ts";
import { rootRoute } from "./root-route.tsx";

const homeRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/work", replace: true });
  },
});

/** Every page of the console. An area adds its routes here, and its entry to `navigation.ts`. */
const routeTree = rootRoute.addChildren([
  homeRoute,
  ...runsRoutes,
  ...runRoutes,
  ...workRoutes,
  ...factoriesRoutes,
  ...schedulesRoutes,
  ...waitingRoutes,
  ...platformRoutes,
  ...teamRoutes,
  ...metricsRoutes,
  ...pullRequestsRoutes,
  ...budgetsRoutes,
  ...scorersRoutes,
  ...benchmarksRoutes,
]);

export const router = createRouter({
  routeTree,
  parseSearch,
  stringifySearch,
  defaultErrorComponent: ErrorView,
  defaultPreload: "intent",
  defaultPreloadStaleTime: 0,
  scrollRestoration: false,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
