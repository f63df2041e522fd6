import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "../../app/root-route.tsx";
import { costsSearch, metricsSearch } from "./metrics-search.ts";

export const metricsRoutes = [
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/activity",
    validateSearch: metricsSearch,
    component: lazyRouteComponent(() => import("./metrics-page.tsx")),
  }),
  createRoute({
    getParentRoute: () => rootRoute,
    path: "/costs",
    validateSearch: costsSearch,
    component: lazyRouteComponent(() => import("./costs-page.tsx")),
  }),
] as const;
